"""What a server said went wrong: read out of error bodies, headers and chunks, which each server shapes its own way."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING

from agent_lsp.messages import JsonObject

if TYPE_CHECKING:
    from openai import APIStatusError


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a server said went wrong, by HTTP status or inside a stream. ``codes`` are its code and type, if any.

    ``limit`` is the size of its context in tokens, where it said that in a field of its own.
    """

    text: str
    status: int | None = None
    codes: frozenset[str] = frozenset()
    retry_after: float | None = None
    limit: int | None = None

    def __str__(self) -> str:
        return self.text if self.status is None else f"HTTP {self.status}: {self.text}"


def failure_of(error: "APIStatusError") -> Failure:
    """The failure in an answer with an error status."""
    headers = error.response.headers
    return Failure(
        text=_text_of(error.body) or _phrase(error.status_code),
        status=error.status_code,
        codes=_codes_of(error.body),
        retry_after=retry_after(headers, datetime.now(UTC)),
        limit=_limit_of(error.body),
    )


def failure_in(chunk: JsonObject) -> Failure | None:
    """The failure that a chunk of a stream reports, if it does: at its top, in its choice, or by its finish reason."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = chunk.get("error") or choice.get("error") or (chunk if chunk.get("object") == "error" else None)
    if error is True:
        error = chunk.get("message")
    if not error and choice.get("finish_reason") in _BROKEN_FINISH:
        error = {"type": "server_error", "message": f"the answer ended with {choice['finish_reason']}"}
    if not error:
        return None
    codes = _codes_of(error)
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)), None)
    return Failure(
        text=_text_of(error) or "an error without a text", status=status, codes=codes, limit=_limit_of(error)
    )


_BROKEN_FINISH = ("error", "abort", "insufficient_system_resource")


def _text_of(body: object) -> str:
    """The human part of an error body, which servers shape in many ways."""
    if isinstance(body, str):
        return "" if body.lstrip().startswith("<") else body
    if isinstance(body, Mapping):
        if "loc" in body and "msg" in body:  # what pydantic refuses, at servers made of it
            return f"{'.'.join(map(str, body['loc']))}: {body['msg']}"
        keys = ("message", "detail", "error", "msg")
        said = next((text for key in keys if (text := _text_of(body.get(key)))), "")
        return f"{said}{_passed_on(body.get('metadata'))}"
    return "; ".join(filter(None, map(_text_of, body))) if isinstance(body, list) else ""


def _passed_on(metadata: object) -> str:
    """What a gateway was told by the server behind it, which is the reason that matters."""
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if not isinstance(raw, str):
        return ""
    try:
        return f": {_text_of(json.loads(raw)) or raw}"
    except ValueError:
        return f": {raw}"


def _first(body: object) -> object:
    """The error itself, where it comes in a list or under a key (Gemini)."""
    if isinstance(body, list) and body:
        return _first(body[0])
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        return body["error"]
    return body


def _codes_of(body: object) -> frozenset[str]:
    body = _first(body)
    values = (body.get("code"), body.get("type"), body.get("status")) if isinstance(body, Mapping) else ()
    return frozenset(str(value).lower() for value in values if isinstance(value, str | int))


def _limit_of(body: object) -> int | None:
    body = _first(body)
    limit = body.get("n_ctx") if isinstance(body, Mapping) else None
    return limit if isinstance(limit, int) and limit > 0 else None


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "no reason given"


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long a server asks us to wait, in seconds: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date."""
    milliseconds, wish = _number(headers.get("retry-after-ms")), headers.get("retry-after")
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = _number(wish)
    if seconds is not None or wish is None:
        return seconds
    try:
        date = parsedate_to_datetime(wish)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
