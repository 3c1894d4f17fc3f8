"""What docs/models.md says of quirks and servers, made from the code that does it."""

import re
from pathlib import Path

from agent_lsp.models.quirks import QUIRKS
from tests.support.providers import PROVIDERS

DOCUMENT = Path(__file__).parents[3] / "docs" / "models.md"
_BEGIN, _END = "<!-- {name}: python -m tests.support.providers -->\n", "<!-- end -->"


def with_tables(text: str) -> str:
    """The document with its tables as they are now."""
    for name, table in (("quirks", _quirks()), ("servers", _servers())):
        begin = _BEGIN.format(name=name)
        text = re.sub(
            f"({re.escape(begin)}).*?({re.escape(_END)})",
            lambda match, table=table: match[1] + table + match[2],  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def _quirks() -> str:
    rows = [f"| `{quirk.name}` | {quirk.effect} | {_needed_by(quirk.name)} |" for quirk in QUIRKS]
    return "\n".join(["| quirk | what we then do | seen at |", "|---|---|---|", *rows, ""])


def _needed_by(quirk: str) -> str:
    titles = (p.title.partition(" (")[0] for p in PROVIDERS if quirk in {**p.quirks, **p.quirks_of_others})
    return ", ".join(titles)


def _servers() -> str:
    rows = []
    for provider in PROVIDERS:
        quirks = ", ".join(f"`{name}`" for name in {**provider.quirks, **provider.quirks_of_others}) or "none"
        size = "not told" if provider.limit is None else "told"
        rows.append(f"| {provider.title} | {'; '.join(provider.deviations)} | {quirks} | {size} |")
    head = ["| server | where it differs | quirks found | its context's size, in a refusal |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])
