"""The manifest and the tests agree."""

from tests.requirements import disagreements


def test_done_lines_are_carried_and_carried_lines_exist() -> None:
    assert disagreements() == []
