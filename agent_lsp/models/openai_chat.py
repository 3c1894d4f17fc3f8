"""A model behind OpenAI's chat completions, at OpenAI or at any server that speaks like it.

Owns the connection and the retries. What is sent is ``encoding``'s, what is read is ``reply``'s, and what an error
means is ``faults``'s. The client library is imported at the first request, or ahead of it by ``connect``, and sends
our bytes as they are: it would walk through the whole history otherwise.
"""

import contextlib
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from agent_lsp.errors import ContextOverflow
from agent_lsp.models.base import ModelEvent, ModelRequest, RetryWait
from agent_lsp.models.encoding import RequestEncoder
from agent_lsp.models.failures import failure_of
from agent_lsp.models.faults import (
    QuirkFound,
    TransientFault,
    broken,
    check,
    is_openai,
    judge,
    unreachable,
    unusable,
    wait_after,
    web_page,
)
from agent_lsp.models.memory import ModelMemory
from agent_lsp.models.quirks import Quirk, Quirks
from agent_lsp.models.reply import ReplyReader
from agent_lsp.models.settings import OpenAIChatSettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_WRITE_TIMEOUT = 60.0
_DRAIN_TIMEOUT = 0.1
_CLOSE_TIMEOUT = 1.0


class OpenAIChatModel:
    """One conversation partner. ``aclose`` closes its connections.

    ``settings`` are as they were given; what was found out about the server holds besides, unless they say otherwise.
    """

    def __init__(self, settings: OpenAIChatSettings, memory: ModelMemory | None = None) -> None:
        self.settings = settings
        self.memory = memory or ModelMemory(None, settings.base_url, settings.name)
        self._in_force = settings
        self._heed_memory()
        self._client: AsyncOpenAI | None = None
        self._connecting = threading.Lock()

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def quirks(self) -> Quirks:
        """All quirks in force."""
        return self._in_force.quirks

    @property
    def context_window(self) -> int | None:
        """Tokens, where they are set or the server has told them."""
        return self._in_force.context_window

    @property
    def input_limit(self) -> int | None:
        """The context less room for an answer."""
        window = self.context_window
        return None if window is None else window - min(self.settings.max_output_tokens or window // 8, window // 2)

    def learn_context_window(self, tokens: int) -> None:
        """Remember what the server told; what is set counts more."""
        self.memory.set_context_window(tokens)
        self._in_force = replace(self._in_force, context_window=self.settings.context_window or tokens)

    def forget(self) -> None:
        """Know nothing about the server any more, but what is set."""
        self.memory.forget()
        self._heed_memory()

    def _heed_memory(self) -> None:
        known, settings = self.memory.known, self.settings
        self._in_force = replace(
            settings,
            quirks={**known.quirks, **settings.quirks},
            context_window=settings.context_window or known.context_window,
        )
        self._encoder = RequestEncoder(self._in_force)

    def connect(self) -> "AsyncOpenAI":
        """Make the client ahead of the first request. Sends nothing, but blocks: for a worker thread.

        Raises ModelError for a key or an address that cannot work.
        """
        with self._connecting:
            if self._client is None:
                check(self.settings)
                try:
                    self._client = self._make_client()
                except Exception as error:  # an odd host name, or a bad proxy variable
                    raise unusable(error, self.settings) from None
            return self._client

    def _make_client(self) -> "AsyncOpenAI":
        import openai

        settings = self.settings
        client = openai.AsyncOpenAI(
            # The library takes no request without a key, or takes one from the environment.
            api_key=(settings.api_key or "").strip() or "none",
            base_url=settings.base_url,
            max_retries=0,
            timeout=openai.Timeout(settings.connect_timeout, read=settings.read_timeout, write=_WRITE_TIMEOUT),
        )
        if not is_openai(settings):  # the library takes these from the environment, for any server
            client.organization = client.project = None
        return client

    async def aclose(self) -> None:
        """Close all connections; the next request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream one answer; sends again after faults that pass (F54), and as the server wants it (F55)."""
        tools = frozenset(schema.name for schema in request.tools)
        body = self._encoder.encode(request)
        attempt = found = 0
        while True:
            try:
                async with contextlib.aclosing(self._attempt(body, tools)) as events:
                    async for event in events:
                        yield event
                return
            except TransientFault as fault:
                attempt += 1
                wait = wait_after(fault, attempt, self._in_force)
            except QuirkFound as refusal:
                found += 1
                self.add_quirk(refusal.quirk)
                body = self._encoder.encode(request)
                reason = f"{refusal.said}; from now on {refusal.quirk.effect.replace('`', '')}"
                wait = RetryWait(attempt=found, delay=0.0, reason=reason)
            except ContextOverflow as overflow:
                if overflow.limit is not None:
                    self.learn_context_window(overflow.limit)
                raise
            yield wait
            await anyio.sleep(wait.delay)

    def add_quirk(self, quirk: Quirk) -> None:
        """Let a quirk hold from the next request on, and remember it."""
        self.memory.add_quirk(quirk)
        self._heed_memory()

    async def _attempt(self, body: bytes, tools: frozenset[str]) -> AsyncGenerator[ModelEvent, None]:
        """Send the request once and read its answer. The response is closed on every way out."""
        stream = await self._open(body)
        try:
            reader = ReplyReader(self._in_force, tools=tools, document="json" in _content_type(stream))
            async with contextlib.aclosing(self._pieces(stream)) as pieces:
                try:
                    async for piece in pieces:
                        for event in reader.feed(piece):
                            yield event
                        if reader.done:
                            await _drain(pieces)
                            break
                except TransientFault:
                    if not reader.complete:
                        raise
            for last in reader.end():
                yield last
        finally:
            with anyio.move_on_after(_CLOSE_TIMEOUT, shield=True):
                await stream.close()

    async def _open(self, body: bytes) -> "AsyncStream[object]":
        """Send the request and wait for the head of the answer."""
        client = self._client
        if client is None:
            client = await anyio.to_thread.run_sync(self.connect)
        import openai

        try:
            stream = await client.post(
                "/chat/completions", content=body, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object]
            )
        except openai.APIStatusError as error:
            raise judge(failure_of(error), self._in_force) from None  # the original may repeat the key
        except Exception as error:
            # Reading the body of an error may fail with the classes of the HTTP library, which is not ours to import.
            raise unreachable(error, self.settings) from error
        if "html" in _content_type(stream):
            await stream.close()
            raise web_page(self.settings)
        return stream

    async def _pieces(self, stream: "AsyncStream[object]") -> AsyncGenerator[bytes, None]:
        """The bytes of an answer. Raises TransientFault where the connection breaks."""
        pieces = stream.response.aiter_bytes()
        while True:
            try:
                piece = await anext(pieces, None)
            except Exception as error:
                raise broken(error, self.settings) from error
            if piece is None:
                return
            yield piece


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    """Read what follows ``[DONE]``, normally nothing, so that the connection can serve the next request."""
    with anyio.move_on_after(_DRAIN_TIMEOUT), contextlib.suppress(TransientFault):
        async for _ in pieces:
            pass


def _content_type(stream: "AsyncStream[object]") -> str:
    return stream.response.headers.get("content-type", "").lower()
