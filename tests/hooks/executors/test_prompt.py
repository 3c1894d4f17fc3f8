"""A hook as one question to the model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.hooks.answer import DEFAULT_REASON, Answer
from agent_lsp.hooks.executors.prompt import run_prompt_hook
from agent_lsp.hooks.runner import Occasion
from agent_lsp.hooks.settings import ConfiguredHook
from agent_lsp.messages import UserMessage
from agent_lsp.models.base import ModelEvent, ModelRequest, TextChunk
from agent_lsp.models.scripted import ScriptedModel, Step, says
from tests.hooks.configured import configured, make_runner

PAYLOAD = '{"event": "PreToolUse"}'


def hook(prompt: str = "Judge $ARGUMENTS", timeout: float = 60) -> ConfiguredHook:
    return configured("PreToolUse", {"type": "prompt", "prompt": prompt, "timeout": timeout, "blocking": True})


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("prompt", "sent"),
    [
        ("Judge $ARGUMENTS", f"Judge {PAYLOAD}"),
        ("$ARGUMENTS and $ARGUMENTS", f"{PAYLOAD} and {PAYLOAD}"),
        ("$ARGUMENTSx $arguments {PAYLOAD}", f"{PAYLOAD}x $arguments {{PAYLOAD}}"),
        ("Always agree", "Always agree"),
    ],
)
async def test_question_is_asked_once_with_the_payload_in_it(prompt: str, sent: str) -> None:
    model = ScriptedModel([says('{"ok": true}')])

    assert await run_prompt_hook(hook(prompt), PAYLOAD, model=model) == Answer()

    model.assert_consumed()
    assert model.requests[0].messages == (UserMessage(content=sent),)
    assert model.requests[0].tools == ()


@pytest.mark.requirement("B10")
async def test_payload_that_holds_the_placeholder_is_not_filled_again() -> None:
    model = ScriptedModel([says("")])

    await run_prompt_hook(hook("<$ARGUMENTS>"), '{"a": "$ARGUMENTS"}', model=model)

    assert model.requests[0].messages == (UserMessage(content='<{"a": "$ARGUMENTS"}>'),)


def blocked(reason: str = DEFAULT_REASON) -> Answer:
    return Answer(blocked=True, reason=reason)


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"ok": true}', Answer()),
        ('{"ok": true, "reason": "fine"}', Answer()),
        ('{"ok": false}', blocked()),
        ('{"ok": false, "reason": ""}', blocked()),
        ('{"ok": false, "reason": 5}', blocked()),
        ('{"ok": false, "reason": "no"}', blocked("no")),
        ('\n  {"ok": false, "reason": "no"}  \n', blocked("no")),
        ('```json\n{"ok": false, "reason": "no"}\n```', blocked("no")),
        ('I think: {"ok": false, "reason": "a {b} c"}. Sorry!', blocked("a {b} c")),
        ('{\n  "ok": false,\n  "reason": "no"\n}\n\nBecause of that.', blocked("no")),
        ("", Answer()),
        ("no", Answer()),
        ("{ok: false}", Answer()),
        ('{"ok": false', Answer()),
        ("[]", Answer()),
        ("false", Answer()),
        ("{}", Answer()),
        ('{"ok": null}', Answer()),
        ('{"block": true}', Answer()),
    ],
)
async def test_reply_is_read_as_a_verdict_and_what_is_unreadable_allows(reply: str, answer: Answer) -> None:
    assert await run_prompt_hook(hook(), PAYLOAD, model=ScriptedModel([says(reply)])) == answer


@pytest.mark.requirement("B10", "B14")
@pytest.mark.parametrize("error", [ModelError("the server is down"), ContextOverflow("the server is down")])
async def test_error_of_the_model_is_a_failure_and_blocks_nothing(error: Exception) -> None:
    answer = await run_prompt_hook(hook(), PAYLOAD, model=ScriptedModel([error]))

    assert answer == Answer(failure="the server is down")


class SilentModel:
    """Begins an answer and never ends it; ``left`` says that the stream was closed."""

    name = "silent"
    input_limit = None
    left = False

    def connect(self) -> None:
        """There is nothing to connect to."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            yield TextChunk(text='{"ok": false')
            await anyio.sleep_forever()
        finally:
            self.left = True


@pytest.mark.requirement("B5", "B14")
async def test_model_that_takes_too_long_is_left() -> None:
    model = SilentModel()

    assert await run_prompt_hook(hook(timeout=0.05), PAYLOAD, model=model) == Answer(failure="timed out after 0.05 s")
    assert model.left


@pytest.mark.requirement("B10", "B15", "B21")
@pytest.mark.parametrize(
    ("step", "blocked_by", "reason"),
    [
        (says('{"ok": false, "reason": "no"}'), "judge", "no"),
        (says('{"ok": true}'), None, ""),
        (ModelError("x"), None, ""),
    ],
)
async def test_verdict_reaches_the_outcome(tmp_path: Path, step: Step, blocked_by: str | None, reason: str) -> None:
    judge = configured("PreToolUse", {"type": "prompt", "prompt": "Judge", "name": "judge", "blocking": True})

    outcome = await make_runner(tmp_path, {}, judge, script=[step]).run(Occasion(event="PreToolUse"))

    assert (outcome.blocked_by, outcome.reason) == (blocked_by, reason)
