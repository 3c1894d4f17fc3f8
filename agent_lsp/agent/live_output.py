"""What is shown of a call while it runs."""

from collections.abc import Callable

MAX_CHARACTERS = 1_000_000  # characters of one call; its result has head and tail anyway


class LiveOutput:
    """Passes live output on, up to a bound: whoever watches gets no more of a flood."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._left = MAX_CHARACTERS

    def __call__(self, text: str) -> None:
        if self._left > 0:
            self._emit(text[: self._left])
            self._left -= len(text)
            if self._left <= 0:
                self._emit("\n[further output is not shown live]\n")
