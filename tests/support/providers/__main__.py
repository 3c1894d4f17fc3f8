"""``python -m tests.support.providers`` writes the tables of docs/models.md anew."""

from tests.support.providers.tables import DOCUMENT, with_tables

if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
