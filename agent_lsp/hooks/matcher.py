"""Which calls a configured hook is about (B17): any, a regular expression, or a whole name.

Invariant: matching takes time linear in the text, whatever the pattern is, because the engine is RE2; patterns that it
does not know, such as look-ahead and back-references, are refused where they are configured.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re2 import _Regexp as Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One parsed matcher; ``text`` is what stands in the settings."""

    text: str
    pattern: "Pattern | None" = None

    def matches(self, subject: str) -> bool:
        """Whether a tool's name, or the text of its arguments, is meant."""
        if self.pattern is None:
            return not self.text or self.text.casefold() == subject.casefold()
        return self.pattern.search(subject.encode(errors="replace")) is not None


ANY = Matcher(text="")


def parse_matcher(text: str) -> Matcher:
    """``""`` is any, ``/pattern/`` and ``/pattern/i`` are a search, all else a name. Raises ValueError."""
    for end, case_sensitive in (("/", True), ("/i", False)):
        if len(text) > len(end) and text.startswith("/") and text.endswith(end):
            return Matcher(text=text, pattern=_compile(text[1 : -len(end)], case_sensitive=case_sensitive))
    return Matcher(text=text)


def parse_alternatives(text: str) -> Matcher:
    """The established shape's matcher: ``""`` and ``*`` are any, all else a regular expression on the whole name."""
    if text in ("", "*"):
        return ANY
    return Matcher(text=text, pattern=_compile(rf"\A(?:{text})\z", case_sensitive=True))


def _compile(pattern: str, *, case_sensitive: bool) -> "Pattern":
    import re2  # only where a pattern is configured

    options = re2.Options()
    options.case_sensitive = case_sensitive
    options.log_errors = False
    try:
        return re2.compile(pattern.encode(), options=options)
    except re2.error as error:
        raise ValueError(f"bad regular expression: {error.args[0].decode(errors='replace')}") from error
    except UnicodeEncodeError as error:
        raise ValueError(f"bad regular expression: {error}") from error
