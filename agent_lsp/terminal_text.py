"""Output of programs as a person would have seen it in a terminal (F41)."""

import codecs
import re

_ESCAPE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC and other strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, erasing
    r"|\x1b[ -/]*[0-~]"  # everything shorter
)
_UNFINISHED_ESCAPE = re.compile(r"\x1b(?:[\]PX^_][^\x07\x1b\n]{0,4096}\x1b?|\[[0-?]*[ -/]*|[ -/]*)\Z|\r\Z")
_OVERWRITTEN = re.compile(r"^.*\r(?=[^\r\n])", re.MULTILINE)
_RUBBED_OUT = re.compile(r"[^\b\n]\x08")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean_terminal_text(text: str) -> str:
    """Remove escape sequences, what carriage returns and backspaces overwrote, and other control characters (F41)."""
    text = _ESCAPE.sub("", text)
    text = _OVERWRITTEN.sub("", text)
    text = _RUBBED_OUT.sub("", text)
    return _CONTROL.sub("", text)


def cut_middle(text: str, limit: int) -> str:
    """Keep the head and the tail of a text longer than ``limit`` characters and say how much was cut."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters cut …]\n{text[-half:]}"


class LiveText:
    """Decodes and cleans a stream piece by piece; an overwritten line stays, and its successor begins a new one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, chunk: bytes, *, final: bool = False) -> str:
        text = self._held + self._decoder.decode(chunk, final)
        unfinished = None if final else _UNFINISHED_ESCAPE.search(text)
        self._held = unfinished.group() if unfinished else ""
        ready = text.removesuffix(self._held)
        if ready.startswith("\r") and not ready.startswith("\r\n"):
            ready = "\n" + ready[1:]
        return clean_terminal_text(ready)
