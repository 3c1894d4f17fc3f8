"""Receiving, answering and asking: JSON-RPC as this server speaks it, on top of pygls.

pygls gives the types, the registration of features and commands, the capabilities and the typed calls to the client;
what it does with a message once it has arrived is replaced here. Invariants: every request gets exactly one answer,
and it is what the protocol says; the user never sees an error of the protocol; nothing is kept of a message that is
done with.
"""

import enum
import inspect
import itertools
import logging
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import attrs
from anyio.lowlevel import checkpoint
from cattrs import Converter
from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol

from agent_lsp.errors import AgentLspError
from agent_lsp.lsp.jobs import Job, JobCancelled
from agent_lsp.lsp.jsonrpc import Malformed, MessageId, Notification, Reply, Request, encode, is_id, parse
from agent_lsp.lsp.lenient import reasons

if TYPE_CHECKING:
    from agent_lsp.lsp.server import AgentServer

logger = logging.getLogger(__name__)

INITIALIZE_LIMIT = 10.0
"""Seconds for which the messages after ``initialize`` wait until it is answered."""

PLAIN = frozenset({types.INITIALIZE, types.WORKSPACE_EXECUTE_COMMAND})
"""Methods of the protocol whose handlers take the parameters as plain JSON, as those of custom methods do."""


class Stage(enum.Enum):
    """Where the server is in its life; each stage admits other messages."""

    NEW = enum.auto()
    INITIALIZING = enum.auto()
    RUNNING = enum.auto()
    SHUT_DOWN = enum.auto()


class RpcProtocol(LanguageServerProtocol):
    """pygls' protocol with its message handling replaced; its ``_request_futures`` hold our own questions only."""

    _server: "AgentServer"

    def __init__(self, server: "AgentServer", converter: Converter) -> None:
        self.stage = Stage.NEW
        self._answering: dict[MessageId, Job[None]] = {}
        self._ids = itertools.count(1)
        super().__init__(server, converter)

    async def receive(self, body: bytes) -> None:
        """Handle the content of one frame; returns when the next one may be handled."""
        logger.debug("received %r", body)
        try:
            message = parse(body)
        except Malformed as malformed:
            self.refuse(malformed.error, malformed.id)
            return
        match message:
            case Request():
                self._handle_request(message.id, message.method, message.params)
                if message.method == types.INITIALIZE:
                    await self._initialized(message.id)
            case Notification():
                self._handle_notification(message.method, message.params)
            case Reply(id=int() | str() as msg_id):
                self._handle_response(msg_id, message.result, message.error)
            case Reply():
                logger.debug("ignored an answer without an id")
        await checkpoint()  # a handler that waits makes its first step before the next message

    async def _initialized(self, msg_id: MessageId) -> None:
        if (job := self._answering.get(msg_id)) is not None:
            with anyio.move_on_after(INITIALIZE_LIMIT):
                await job.settle()

    # Requests of the client

    def _handle_request(self, msg_id: MessageId, method_name: str, params: Any) -> None:
        if msg_id in self._answering:
            self.refuse(JsonRpcInvalidRequest(f"Invalid request: the id {msg_id!r} is in use"), msg_id)
            return
        try:
            self._admit(method_name)
            outcome = self._call(method_name, params)
        except Exception as error:
            self.refuse(_for_client(error, method_name), msg_id)
            return
        if _waits(outcome):
            answer = partial(self._answer, msg_id, method_name, outcome)
            self._answering[msg_id] = self._server.jobs.start(answer, method_name)
        else:
            self._send_response(msg_id, outcome)

    async def _answer(self, msg_id: MessageId, method: str, outcome: Any) -> None:
        try:
            self._send_response(msg_id, await self._finish(outcome))
        except anyio.get_cancelled_exc_class():
            self.refuse(JsonRpcRequestCancelled(), msg_id)
            raise
        except Exception as error:
            self.refuse(_for_client(error, method), msg_id)
        finally:
            del self._answering[msg_id]

    def _admit(self, method: str) -> None:
        if self.stage is Stage.SHUT_DOWN:
            raise JsonRpcInvalidRequest("Invalid request: the server is shutting down")
        if method == types.INITIALIZE and self.stage is not Stage.NEW:
            raise JsonRpcInvalidRequest("Invalid request: the server is initialized already")
        if method != types.INITIALIZE and self.stage is not Stage.RUNNING:
            raise JsonRpcServerNotInitialized("The server is not initialized")

    def refuse(self, error: JsonRpcException, msg_id: MessageId | None) -> None:
        """Answer with an error; the id is None for what could not be read."""
        body = {"code": error.code, "message": error.message} | ({} if error.data is None else {"data": error.data})
        self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "error": body})

    def _send_response(self, msg_id: MessageId, result: Any = None, error: types.ResponseError | None = None) -> None:
        if error is not None:
            self.refuse(JsonRpcException.from_error(error), msg_id)
            return
        try:
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})
        except Exception:
            logger.exception("the result of request %r has no JSON form", msg_id)
            self.refuse(JsonRpcInternalError("Internal error: the result has no JSON form"), msg_id)

    # Notifications of the client

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if method_name == types.CANCEL_REQUEST:
            self._cancel_request(params)
            return
        if self.stage is not Stage.RUNNING and method_name != types.EXIT:
            logger.debug("ignored %s while %s", method_name, self.stage.name)
            return
        if _is_request(method_name):
            logger.warning("ignored %s: it is a request, and came without an id", method_name)
            return
        try:
            outcome = self._call(method_name, params)
        except Exception as error:
            _log_ignored(method_name, error)
        else:
            if _waits(outcome):
                self._server.jobs.start(partial(self._heed, method_name, outcome), method_name)

    async def _heed(self, method: str, outcome: Any) -> None:
        try:
            await self._finish(outcome)
        except Exception as error:
            _log_ignored(method, error)

    def _cancel_request(self, params: Any) -> None:
        msg_id = params.get("id") if isinstance(params, dict) else None
        if is_id(msg_id) and msg_id in self._answering:
            self._answering[msg_id].cancel()

    # Handlers: called at once; what they leave to wait for is finished in a job

    def _call(self, method: str, params: Any) -> Any:
        handler = self._get_handler(method)
        return handler(self._structure(method, params))

    def _structure(self, method: str, params: Any) -> Any:
        if method in PLAIN or method not in types.METHOD_TO_TYPES:
            return params
        kind: Any = types.METHOD_TO_TYPES[method][2]
        try:
            with attrs.validators.disabled():  # a number out of bounds is no reason to lose an edit
                return None if kind is None else self._converter.structure({} if params is None else params, kind)
        except Exception as error:
            raise JsonRpcInvalidParams(f"Invalid params: {reasons(error)}") from error

    async def _finish(self, outcome: Any) -> Any:
        """The result of a handler that returned a coroutine or, as pygls' own do, a generator of handlers to run."""
        if inspect.isawaitable(outcome):
            return await outcome
        return await self._drive(outcome) if inspect.isgenerator(outcome) else outcome

    async def _drive(self, steps: Generator[Any, Any, Any]) -> Any:
        result = None
        while True:
            try:
                handler, args, kwargs = steps.send(result)
            except StopIteration as end:
                return end.value
            result = await self._finish(handler(*args, **(kwargs or {})))

    # Our own requests and notifications

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: MessageId | None = None,
    ) -> Future[Any]:
        """Ask the client. Cancelling the future, or the task that awaits it, withdraws the question there as well."""
        msg_id = next(self._ids) if msg_id is None else msg_id
        self._send_data(self._message(method, params, id=msg_id))
        future: Future[Any] = Future()
        self._request_futures[msg_id] = future
        self._result_types[msg_id] = self.get_result_type(method)
        future.add_done_callback(partial(self._settle_question, msg_id, callback))
        return future

    def _settle_question(self, msg_id: MessageId, callback: Callable[[Any], None] | None, future: Future[Any]) -> None:
        self._request_futures.pop(msg_id, None)
        self._result_types.pop(msg_id, None)
        if future.cancelled():
            self.notify(types.CANCEL_REQUEST, {"id": msg_id})
        elif callback is not None and future.exception() is None:
            callback(future.result())

    def _handle_response(self, msg_id: MessageId, result: Any | None = None, error: Any = None) -> None:
        future, answer_type = self._request_futures.pop(msg_id, None), self._result_types.pop(msg_id, None)
        if future is None:
            logger.debug("ignored an answer to %r, which is not, or no longer, asked", msg_id)
            return
        try:
            if error is not None:
                raise JsonRpcException.from_error(self._converter.structure(error, types.ResponseError))
            if answer_type is not None:
                answer = {"id": msg_id, "jsonrpc": self.VERSION, "result": result}
                result = self._converter.structure(answer, answer_type).result
        except JsonRpcException as refusal:
            future.set_exception(refusal)
        except Exception as mismatch:
            future.set_exception(JsonRpcInternalError(f"The client's answer has a wrong shape: {reasons(mismatch)}"))
        else:
            future.set_result(result)

    def notify(self, method: str, params: Any | None = None) -> None:
        """Tell the client; raises TypeError or ValueError for what has no JSON form."""
        self._send_data(self._message(method, params))

    def _message(self, method: str, params: Any, **id_: MessageId) -> dict[str, Any]:
        return {"jsonrpc": self.VERSION, **id_, "method": method} | ({} if params is None else {"params": params})

    def _send_data(self, data: Any) -> None:
        if self.writer is None:
            raise RuntimeError("the server does not run")
        body = encode(data, self._serialize_message)
        logger.debug("sending %r", body)
        self.writer.write(body)

    def _serialize_message(self, data: Any) -> Any:
        return dict(data) if isinstance(data, Mapping) else super()._serialize_message(data)


def _waits(outcome: Any) -> bool:
    return inspect.isawaitable(outcome) or inspect.isgenerator(outcome)


def _is_request(method: str) -> bool:
    """Whether the protocol knows a method as one that is answered."""
    return method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is not None


def _single(error: Exception) -> Exception:
    """The error inside a group of one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _log_ignored(method: str, error: Exception) -> None:
    """Say why a notification came to nothing; the client is not told."""
    match error := _single(error):
        case JsonRpcMethodNotFound():
            logger.debug("ignored %s: nobody handles it", method)
        case JsonRpcException() | AgentLspError():
            logger.warning("ignored %s: %s", method, error)
        case _:
            logger.error("%s failed", method, exc_info=error)


def _for_client(error: Exception, method: str) -> JsonRpcException:
    """What a failed request is answered with: the reason for what was meant to be heard, else only that it failed."""
    match error := _single(error):
        case JsonRpcException():
            return error
        case JobCancelled():
            return JsonRpcRequestCancelled()
        case AgentLspError():
            return JsonRpcException(str(error), types.LSPErrorCodes.RequestFailed)
    logger.error("%s failed", method, exc_info=error)
    return JsonRpcInternalError(f"Internal error in {method}; the server's log has the details")
