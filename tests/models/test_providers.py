"""The model behind servers that deviate as the well-known ones do: each quirk is found once, and remembered."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_lsp.agent.events import ModelRetry
from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.messages import (
    AssistantMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Transcript,
    UserMessage,
)
from agent_lsp.models.base import ModelRequest, Reply, RetryWait
from agent_lsp.models.memory import ModelMemory
from agent_lsp.models.openai_chat import OpenAIChatModel
from agent_lsp.models.quirks import QUIRKS
from agent_lsp.models.settings import Backoff, OpenAIChatSettings
from tests.support.harness import Harness
from tests.support.openai_server import Answer
from tests.support.providers import PROVIDERS
from tests.support.providers.base import Provider, ProviderServer, Turn

NOTE: tuple[str, dict[str, Any]] = ("note", {"text": "ü 1"})


def each(providers: Iterable[Provider] = PROVIDERS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("provider", list(providers), ids=lambda provider: provider.name)


@asynccontextmanager
async def model_at(server: ProviderServer, directory: Path | None = None) -> AsyncIterator[OpenAIChatModel]:
    settings = OpenAIChatSettings(
        name="m",
        base_url=server.base_url,
        api_key="key-that-is-secret",
        max_output_tokens=500,
        temperature=0.2 if server.provider.name == "openai" else None,
        backoff=Backoff(base=0.001, cap=30.0, retries=1),
    )
    model = OpenAIChatModel(settings, ModelMemory(directory, settings.base_url, settings.name))
    try:
        yield model
    finally:
        await model.aclose()


def add_context(_context: HookContext) -> HookResult:
    return HookResult(additional_context=(SystemMessage(content="a hook's word"),))


def harness(tmp_path: Path, model: OpenAIChatModel) -> Harness:
    """The whole loop on a model, with a hook whose context stands behind every tool result (A50)."""
    made = Harness(tmp_path, [])
    assert made.hooks is not None
    made.hooks.register(HookEvent.PRE_TOOL_USE, add_context)
    made.agent = replace(made.agent, model=model)
    return made


@each()
@pytest.mark.requirement("F50", "F52", "F55")
async def test_a_turn_with_a_tool_works_and_quirks_are_found_once(provider: Provider, tmp_path: Path) -> None:
    turns = (Turn(calls=(NOTE,), reasoning="hm hm"), Turn(text="schön gemacht", reasoning="so"))
    with ProviderServer(provider, *turns, *turns) as server:
        for run in ("first", "second"):
            async with model_at(server, tmp_path / "models") as model:
                made = harness(tmp_path, model)
                outcome = await made.run("note it")
                known = dict(model.quirks)
            assert (outcome.text, made.noted) == ("schön gemacht", ["ü 1"])
            assert known == provider.quirks
            notices = [event for event in made.events if isinstance(event, ModelRetry)]
            assert len(notices) == (len(provider.quirks) if run == "first" else 0)
        server.assert_consumed()
    assert len(server.refused) == len(provider.quirks)


@each(provider for provider in PROVIDERS if "tools_by_schema" not in provider.quirks)
@pytest.mark.requirement("F50")
async def test_two_calls_in_one_answer_are_told_apart(provider: Provider, tmp_path: Path) -> None:
    second = ("note", {"text": "2"})
    with ProviderServer(provider, Turn(calls=(NOTE, second)), Turn(text="done")) as server:
        async with model_at(server) as model:
            made = harness(tmp_path, model)
            outcome = await made.run("note it")
    assert (outcome.text, made.noted) == ("done", ["ü 1", "2"])
    assert list(made.results().values()) == ["noted ü 1", "noted 2"]


@each()
@pytest.mark.requirement("F55")
async def test_a_history_of_another_model_is_taken(provider: Provider, tmp_path: Path) -> None:
    """Two prompts in a row, a cancelled turn behind a result: what happens when the model is changed in a session."""
    call = ToolCall(id="call_of_another_model", name="note", arguments='{"text": "0"}')
    history = Transcript(
        [
            UserMessage(content="one"),
            AssistantMessage(content="", tool_calls=(call,)),
            ToolMessage(tool_call_id=call.id, content="noted 0"),
            UserMessage(content="two"),
            SystemMessage(content="context"),
            UserMessage(content="three"),
        ]
    )
    with ProviderServer(provider, Turn(text="fine")) as server:
        async with model_at(server) as model:
            reply = (await ask(model, history))[-1]
            known = dict(model.quirks)
    assert isinstance(reply, Reply)
    assert "fine" in reply.message.content
    assert (
        provider.quirks_of_others.items() <= known.items() <= {**provider.quirks, **provider.quirks_of_others}.items()
    )


async def ask(model: OpenAIChatModel, history: Transcript) -> list[object]:
    return [event async for event in model.stream(ModelRequest(system="Be good.", messages=history))]


@each()
@pytest.mark.requirement("F54")
async def test_a_fault_that_passes_is_waited_for(provider: Provider) -> None:
    with ProviderServer(provider, provider.busy(), Turn(text="fine")) as server:
        async with model_at(server) as model:
            with anyio.fail_after(20):
                events = await ask(model, Transcript([UserMessage(content="Hi")]))
        server.assert_consumed()
    assert isinstance(events[-1], Reply)
    waits = [event for event in events if isinstance(event, RetryWait) and event.delay > 0]
    assert [wait.attempt for wait in waits] == [1]


@each(provider for provider in PROVIDERS if provider.limit is not None)
@pytest.mark.requirement("F53")
async def test_an_overflow_is_recognised_and_tells_the_size(provider: Provider) -> None:
    with ProviderServer(provider, provider.overflow()) as server:
        async with model_at(server) as model:
            with pytest.raises(ContextOverflow):
                await ask(model, Transcript([UserMessage(content="Hi")]))
            assert model.context_window == provider.limit
        server.assert_consumed()


@each(provider for provider in PROVIDERS if provider.asks_for_key)
@pytest.mark.requirement("F56")
async def test_a_bad_key_is_told_with_the_setting_to_change(provider: Provider) -> None:
    await assert_told(
        provider, provider.bad_key(), "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"
    )


@each(provider for provider in PROVIDERS if provider.knows_models)
@pytest.mark.requirement("F56")
async def test_an_unknown_model_is_told_with_the_setting_to_change(provider: Provider) -> None:
    await assert_told(provider, provider.unknown_model(), "Change model.name")


async def assert_told(provider: Provider, answer: Answer, advice: str) -> None:
    with ProviderServer(provider, answer) as server:
        async with model_at(server) as model:
            with pytest.raises(ModelError) as caught:
                await ask(model, Transcript([UserMessage(content="Hi")]))
    text = str(caught.value)
    assert text.endswith(advice)
    assert "\n" not in text


@pytest.mark.requirement("F55")
async def test_a_quirk_that_is_switched_off_by_hand_is_never_found(tmp_path: Path) -> None:
    [azure] = [provider for provider in PROVIDERS if provider.name == "azure"]
    with ProviderServer(azure) as server:
        settings = OpenAIChatSettings(name="m", base_url=server.base_url, quirks={"no_stream_options": False})
        model = OpenAIChatModel(settings, ModelMemory(tmp_path, settings.base_url, "m"))
        with pytest.raises(ModelError, match="Unrecognized request argument supplied: stream_options"):
            await ask(model, Transcript([UserMessage(content="Hi")]))
        await model.aclose()
    assert len(server.refused) == 1
    assert model.memory.known.quirks == {}


@pytest.mark.requirement("F55")
async def test_usage_and_cost_are_read_from_where_the_server_puts_them(tmp_path: Path) -> None:
    costs = {}
    for provider in PROVIDERS:
        with ProviderServer(provider, Turn(text="fine")) as server:
            async with model_at(server) as model:
                reply = (await ask(model, Transcript([UserMessage(content="Hi")])))[-1]
        assert isinstance(reply, Reply)
        costs[provider.name] = (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.cost)
    plain = (10, 0, None)
    assert costs == {provider.name: plain for provider in PROVIDERS} | {
        "azure": (0, 0, None),
        "deepseek": (10, 4, None),
        "openrouter": (10, 0, 0.25),
    }


@pytest.mark.requirement("F55")
async def test_memories_of_two_processes_add_up(tmp_path: Path) -> None:
    one, two = (ModelMemory(tmp_path, "http://host/v1", "m") for _ in range(2))
    one.add_quirk(QUIRKS[0])
    two.add_quirk(QUIRKS[1])
    two.set_context_window(4096)
    again = ModelMemory(tmp_path, "http://host/v1/", "m").known
    assert dict(again.quirks) == {QUIRKS[0].name: True, QUIRKS[1].name: True}
    assert again.context_window == 4096
    assert ModelMemory(tmp_path, "http://other/v1", "m").known.quirks == {}
