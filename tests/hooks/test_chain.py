"""The simple chain, alone and installed in a registry."""

import json
from functools import partial
from typing import Any

import anyio
import pytest

from agent_lsp.errors import HookContractError
from agent_lsp.hooks.chain import PreOutcome, ToolHookChain, install_chain
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.registry import HookAction, HookRegistry
from agent_lsp.messages import ToolResult
from tests.hooks.calls import prepared

CALL = {"tool": "shell", "input": {"command": "ls"}}


def chain_of(**hooks: Any) -> ToolHookChain:
    """A chain whose Pre hooks give these answers, by name."""
    chain = ToolHookChain()
    for name, answer in hooks.items():
        chain.add("pre", name, partial(_answer, answer))
    return chain


def _answer(answer: object, _call: dict[str, Any]) -> object:
    return answer


@pytest.mark.requirement("C1", "C2", "C3", "C4", "C5")
@pytest.mark.parametrize(
    ("hooks", "outcome"),
    [
        ({}, PreOutcome(allowed=True, input={"command": "ls"})),
        ({"a": None}, PreOutcome(allowed=True, input={"command": "ls"})),
        (
            {"a": {"modify_input": {"command": "1"}}, "b": {"modify_input": {"command": "2"}}},
            PreOutcome(allowed=True, input={"command": "2"}),
        ),
        (
            {"a": {"modify_input": {"command": "1"}}, "b": {"deny": "no"}, "c": {"modify_input": {"command": "3"}}},
            PreOutcome(allowed=False, input={"command": "1"}, reason="no", fired_by="b"),
        ),
    ],
)
async def test_pre_hooks_run_in_order_and_the_first_deny_stops(hooks: dict[str, Any], outcome: PreOutcome) -> None:
    assert await chain_of(**hooks).run_pre(CALL) == outcome


@pytest.mark.requirement("C4")
async def test_each_pre_hook_sees_the_input_of_the_one_before() -> None:
    seen: list[Any] = []
    chain = ToolHookChain()

    async def rewrite(call: dict[str, Any]) -> dict[str, Any]:
        seen.append(call)
        return {"modify_input": {"command": call["input"]["command"] + " -l"}}

    chain.add("pre", "a", rewrite)
    chain.add("pre", "b", rewrite)

    assert (await chain.run_pre(CALL)).input == {"command": "ls -l -l"}
    assert [call["input"]["command"] for call in seen] == ["ls", "ls -l"]


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("answer", ["deny", {"deny": 1}, {"allow": True}, {"deny": "x", "modify_input": {}}, True])
async def test_pre_hook_with_another_answer_is_a_contract_error(answer: object) -> None:
    with pytest.raises(HookContractError, match="pre hook a must return nothing, deny or modify_input"):
        await chain_of(a=answer).run_pre(CALL)


@pytest.mark.requirement("C12")
async def test_post_hooks_redact_truncate_and_annotate() -> None:
    chain = ToolHookChain()
    chain.add("post", "redact", lambda call: {"output": call["output"].replace("secret", "***")})
    chain.add("post", "truncate", lambda call: {"output": call["output"][:8]})
    chain.add("post", "annotate", lambda call: {"output": f"[{call['tool']}] {call['output']}"})

    assert await chain.run_post({**CALL, "output": "a secret text", "is_error": False}) == "[shell] a *** te"


@pytest.mark.requirement("C7", "C8", "R11")
async def test_installed_deny_names_the_hook_and_reads_blocked_by_hook() -> None:
    registry = HookRegistry()
    install_chain(chain_of(policeman={"deny": "not here"}), registry)

    outcome = await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared()))

    assert outcome.result.blocking_error is not None
    assert outcome.result.blocking_error.content == "Error [hook_blocked]: blocked by hook: not here"
    assert outcome.actions == (HookAction(hook="policeman", action="deny", reason="not here"),)


@pytest.mark.requirement("C5", "C8")
async def test_installed_rewrite_is_prepared_again_and_announced() -> None:
    registry = HookRegistry()
    install_chain(chain_of(a={"modify_input": {"command": "ls -la"}}), registry)

    outcome = await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared("ls")))

    assert outcome.result.updated_input == prepared("ls -la")
    assert outcome.actions == (HookAction(hook="chain", action="rewrite"),)


@pytest.mark.requirement("C5")
async def test_installed_illegal_rewrite_is_a_contract_error() -> None:
    registry = HookRegistry()
    install_chain(chain_of(a={"modify_input": {"command": 1}}), registry)

    with pytest.raises(HookContractError, match="must match the registered input schema"):
        await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared()))


@pytest.mark.requirement("C5")
async def test_installed_chain_that_passes_changes_nothing() -> None:
    registry, chain = HookRegistry(), chain_of(a=None)
    chain.add("post", "b", lambda _call: None)
    install_chain(chain, registry)
    result = ToolResult(content="r")

    pre = await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared()))
    post = await registry.run(HookContext(event=HookEvent.POST_TOOL_USE, prepared=prepared(), result=result))

    assert (pre.result, post.result) == (HookResult(), HookResult())


@pytest.mark.requirement("C19")
@pytest.mark.parametrize(("command", "allowed"), [("ls", True), ("forbidden", False)])
async def test_external_program_decides_like_a_function(command: str, allowed: bool) -> None:
    async def program(call: dict[str, Any]) -> dict[str, str] | None:
        ran = await anyio.run_process(["grep", "-q", "forbidden"], input=json.dumps(call).encode(), check=False)
        return {"deny": "found"} if ran.returncode == 0 else None

    chain = ToolHookChain()
    chain.add("pre", "program", program)

    outcome = await chain.run_pre({"tool": "shell", "input": {"command": command}})

    assert (outcome.allowed, outcome.reason) == (allowed, None if allowed else "found")
