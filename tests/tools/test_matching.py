"""Every place changes, and few lines are compared."""

import pytest

from agent_lsp.tools.matching import Edited, apply_edit, likely_lines


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("aaaaa", "aa", "b", Edited(text="bba", line=1, count=2)),
        ("a" * 2_000_001, "aa" * 1_000, "b", Edited(text="b" * 1_000 + "a", line=1, count=1_000)),
        ("\r\n\r\n\r\n", "\n\n", "x", Edited(text="x\r\n", line=1)),
        ("a\na\r\na", "a", "x\ny", Edited(text="x\ny\nx\r\ny\r\nx\ny", line=1, count=3)),
        ("a a\r\na", "a", "x\ny", Edited(text="x\r\ny x\r\ny\r\nx\r\ny", line=1, count=3)),
    ],
)
@pytest.mark.requirement("F30")
def test_apply_edit_changes_every_place(text: str, old: str, new: str, expected: Edited) -> None:
    assert apply_edit(text, old, new, every=True) == expected


def test_likely_lines_are_few_and_the_nearest_ones() -> None:
    lines = [f"value_{number} = compute({number})" for number in range(9_000)]

    likely = likely_lines("total_8500 = compute(8500)", lines)

    assert len(likely) == 200
    assert "value_8500 = compute(8500)" in likely


@pytest.mark.parametrize(("anchor", "likely"), [("", []), ("a", ["a", "b", "ab"]), ("abcdef", ["abcdefghi"])])
def test_likely_lines_are_neither_much_shorter_nor_much_longer(anchor: str, likely: list[str]) -> None:
    assert likely_lines(anchor, ["a", "b", "ab", "abcdefghi", "a" * 100]) == likely
