"""Tables of the documentation that are made from code."""

import pytest

from tests.support.providers.tables import DOCUMENT, with_tables


@pytest.mark.requirement("F55")
def test_the_tables_of_quirks_and_servers_are_current() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_tables(text) == text, "python -m tests.support.providers"
    assert text.count("| `") > 10
