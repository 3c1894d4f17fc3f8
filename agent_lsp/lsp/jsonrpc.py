"""JSON-RPC messages: bytes to values and back.

Invariant: ``parse`` gives a well-formed message or raises Malformed, which says what to answer and to which request;
``encode`` gives standard JSON or raises, so that neither side ever sees NaN or half a message.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeGuard

from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest, JsonRpcParseError

MessageId: TypeAlias = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A message that must be answered once."""

    id: MessageId
    method: str
    params: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message that must not be answered."""

    method: str
    params: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The client's answer to one of our requests; ``error`` is what stood under that key, of any shape.

    The id is None where the client could not read the request, or is not well-formed. No answer is ever answered.
    """

    id: MessageId | None
    result: Any = None
    error: Any = None


class Malformed(Exception):
    """Not a message: the error to answer with, and the id to answer to, None where it cannot be known."""

    def __init__(self, error: JsonRpcException, message_id: MessageId | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.id = message_id


def parse(body: bytes) -> Request | Notification | Reply:
    """Read the content of one frame; raises Malformed."""
    try:
        message = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise Malformed(JsonRpcParseError(f"Parse error: {error}")) from error
    if not isinstance(message, dict):
        raise Malformed(JsonRpcInvalidRequest("Invalid request: a message is a JSON object; batches are not supported"))
    message_id = message.get("id")
    if "method" not in message and (is_id(message_id) or not message.keys().isdisjoint(("result", "error"))):
        known = message_id if is_id(message_id) else None
        return Reply(id=known, result=message.get("result"), error=message.get("error"))
    if "id" in message and not is_id(message_id):
        raise Malformed(JsonRpcInvalidRequest("Invalid request: an id is an integer or a string"))
    if message.get("jsonrpc") != "2.0":
        raise Malformed(JsonRpcInvalidRequest('Invalid request: "jsonrpc" is not "2.0"'), message_id)
    return _parse_call(message, message_id)


def is_id(value: object) -> TypeGuard[MessageId]:
    """Whether a value can be the id of a request."""
    return isinstance(value, int | str) and not isinstance(value, bool)


def _parse_call(message: dict[str, Any], message_id: MessageId | None) -> Request | Notification:
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        raise Malformed(JsonRpcInvalidRequest("Invalid request: a method is a string"), message_id)
    if params is not None and not isinstance(params, dict | list):
        raise Malformed(JsonRpcInvalidRequest("Invalid request: params are an object or an array"), message_id)
    if message_id is None:
        return Notification(method=method, params=params)
    return Request(id=message_id, method=method, params=params)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):  # it could not be sent back
        raise ValueError(f"{digits} is too large a number")
    return number


def encode(message: dict[str, Any], convert: Callable[[Any], Any]) -> bytes:
    """Write a message; ``convert`` turns what JSON does not know into what it knows.

    Raises TypeError, ValueError or RecursionError for what has no JSON form.
    """
    return json.dumps(message, default=convert, allow_nan=False, separators=(",", ":")).encode("ascii")
