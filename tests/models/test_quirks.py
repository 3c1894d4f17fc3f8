"""Which refusal asks for which quirk, and what each does to a request."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_lsp.messages import (
    AssistantMessage,
    ChatMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolSchema,
    Usage,
    UserMessage,
)
from agent_lsp.models.assembler import ToolCallAssembler
from agent_lsp.models.base import ModelRequest
from agent_lsp.models.encoding import RequestEncoder
from agent_lsp.models.memory import ModelMemory
from agent_lsp.models.quirks import NAMES, QUIRKS, refused_for
from agent_lsp.models.schema_tools import read_reply, reply_format
from agent_lsp.models.settings import OpenAIChatSettings, Prices

SETTINGS = OpenAIChatSettings(name="m", temperature=0.5, reasoning_effort="low", max_output_tokens=9)
TOOL = ToolSchema(
    name="read_file",
    description="Reads.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
CALL = ToolCall(id="call_1", name="read_file", arguments='{"path": "a"}')
HISTORY: tuple[ChatMessage, ...] = (
    UserMessage(content="one"),
    AssistantMessage(tool_calls=(CALL,), reasoning="hm"),
    ToolMessage(tool_call_id="call_1", content="text"),
    SystemMessage(content="context"),
    UserMessage(content="two"),
)


def body(*messages: ChatMessage, **quirks: bool | str) -> Any:
    request = ModelRequest(system="Be good.", messages=messages or HISTORY, tools=(TOOL,))
    return json.loads(RequestEncoder(replace(SETTINGS, quirks=quirks)).encode(request))


def sent(**quirks: bool | str) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in body(**quirks)["messages"]]


@pytest.mark.requirement("F55")
@pytest.mark.parametrize(
    ("text", "quirk"),
    [
        ("Unrecognized request argument supplied: stream_options", "no_stream_options"),
        ("body.stream_options.include_usage: Extra inputs are not permitted", "no_stream_options"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_completion_tokens"),
        ("'temperature' does not support 0.5 with this model. Only the default (1) value", "no_temperature"),
        ("`temperature` is deprecated for this model.", "no_temperature"),
        ("Unrecognized request argument supplied: reasoning_effort", "no_reasoning_effort"),
        ("Function tools with reasoning_effort are not supported for m", "no_reasoning_effort"),
        ("Missing `reasoning_content` field in the assistant message at message index 2.", "echo_reasoning"),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "echo_reasoning"),
        ("reasoning_content is missing in assistant tool call message at index 2", "echo_reasoning"),
        ("Function call is missing a thought_signature in functionCall parts.", "thought_signatures"),
        ("System role not supported", "system_as_user"),
        ("'messages[0].role' does not support 'system' with this model.", "system_as_user"),
        ("Jinja Exception: System message must be at the beginning.", "system_first"),
        ("Unexpected role 'system' after role 'tool'", "system_first"),
        ("Expected last role User or Tool for serving but got system", "system_first"),
        ("Conversation roles must alternate user/assistant/user/assistant/...", "strict_roles"),
        ("Unexpected role 'user' after role 'tool'", "strict_roles"),
        ("contents[3].parts[0].function_response.name: Name cannot be empty.", "tool_names"),
        ("Tool message must have a 'name' field.", "tool_names"),
        ("Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.", "short_call_ids"),
        ("invalid message content type: <nil>", "content_not_null"),
        ("messages.1.content: field is required", "content_not_null"),
        ("registry.ollama.ai/library/m:latest does not support tools", "tools_by_schema"),
        ("No endpoints found that support tool use.", "tools_by_schema"),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser', "tools_by_schema"),
        ("tools param requires --jinja flag", "tools_by_schema"),
        ("Tool calling is not supported by this model", "tools_by_schema"),
        ("Invalid value for 'context': expected a string", None),
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", None),
        ("models/m is not found for API version v1main, or is not supported for generateContent.", None),
        ("Invalid 'response_format'", None),
        ("no", None),
    ],
)
def test_a_refusal_tells_its_quirk(text: str, quirk: str | None) -> None:
    found = refused_for(text, {})
    assert (None if found is None else found.name) == quirk
    if found is not None:
        assert refused_for(text, dict.fromkeys(NAMES, True)) is None
        again = refused_for(text, {found.name: False})
        assert again is None or again.name != found.name


@pytest.mark.requirement("F55")
def test_every_name_has_one_quirk_in_the_table() -> None:
    assert sorted(quirk.name for quirk in QUIRKS) == sorted(NAMES)


@pytest.mark.requirement("F55")
@pytest.mark.parametrize(
    ("quirk", "absent", "present"),
    [
        ("no_stream_options", "stream_options", None),
        ("max_completion_tokens", "max_tokens", "max_completion_tokens"),
        ("no_temperature", "temperature", None),
        ("no_reasoning_effort", "reasoning_effort", None),
    ],
)
def test_a_parameter_that_is_refused_is_left_out(quirk: str, absent: str, present: str | None) -> None:
    assert absent in body()
    assert absent not in body(**{quirk: True})
    assert present is None or present in body(**{quirk: True})
    assert body(**{quirk: False}) == body()


@pytest.mark.requirement("F55")
def test_messages_are_as_a_strict_server_wants_them() -> None:
    plain = [("system", "Be good."), ("user", "one"), ("assistant", None), ("tool", "text")]
    reminder = "<system-reminder>\ncontext\n</system-reminder>"
    assert sent() == [*plain, ("system", "context"), ("user", "two")]
    assert sent(system_first=True) == [*plain, ("user", reminder), ("user", "two")]
    assert sent(content_not_null=True)[2] == ("assistant", "")
    assert sent(strict_roles=True) == [*plain, ("assistant", "Noted."), ("user", f"{reminder}\n\ntwo")]
    assert sent(strict_roles=True, system_as_user=True)[0] == ("user", "Be good.\n\none")


@pytest.mark.requirement("F55")
def test_strict_roles_hold_however_a_history_came_to_be() -> None:
    """The encoder goes on from what it wrote before: the last message on the wire may still grow."""
    settings = replace(SETTINGS, quirks={"strict_roles": True})
    encoder = RequestEncoder(settings)
    for end in range(len(HISTORY) + 1):
        request = ModelRequest(system="Be good.", messages=HISTORY[:end], tools=(TOOL,))
        assert encoder.encode(request) == RequestEncoder(settings).encode(request)


@pytest.mark.requirement("F50", "F55")
def test_calls_and_results_carry_what_a_server_wants_of_them() -> None:
    def call_and_result(**quirks: bool | str) -> tuple[Any, Any]:
        _, _, assistant, result, *_ = body(**quirks)["messages"]
        return assistant["tool_calls"][0], result

    call, result = call_and_result(short_call_ids=True, tool_names=True, thought_signatures=True)
    assert len(call["id"]) == 9
    assert call["id"].isalnum()
    assert (result["tool_call_id"], result["name"]) == (call["id"], "read_file")
    assert call["extra_content"] == {"google": {"thought_signature": "skip_thought_signature_validator"}}
    call, result = call_and_result()
    assert "extra_content" not in call
    assert "name" not in result


@pytest.mark.requirement("F52")
def test_reasoning_goes_back_in_the_field_that_is_named_and_is_empty_where_there_was_none() -> None:
    said = AssistantMessage(content="fine")
    for value, field in (("reasoning", "reasoning"), (True, "reasoning_content")):
        *_, first, _, last = body(*HISTORY[:3], said, echo_reasoning=value)["messages"]
        assert (first[field], last[field]) == ("hm", "")


@pytest.mark.requirement("F50")
def test_what_comes_with_a_call_goes_back_with_it() -> None:
    """Gemini's signature, in a delta of its own behind the call."""
    assembler = ToolCallAssembler()
    assembler.feed([{"id": "x", "function": {"name": "read_file", "arguments": "{}"}}])
    assembler.feed([{"extra_content": {"google": {"thought_signature": "s"}}}])
    calls = assembler.calls()
    assert [call.arguments for call in calls] == ["{}"]
    [_, assistant] = body(AssistantMessage(tool_calls=calls))["messages"]
    assert assistant["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


# Tools by schema


@pytest.mark.requirement("F57")
def test_tools_stand_in_the_prompt_and_answers_are_held_to_a_schema() -> None:
    made = body(tools_by_schema=True)
    assert "tools" not in made
    system, _, assistant, result, *_ = made["messages"]
    assert "read_file: Reads." in system["content"]
    assert '{"tool": "read_file", "arguments": {"path": "…"}}' in system["content"]
    assert json.loads(assistant["content"]) == {"tool": "read_file", "arguments": {"path": "a"}}
    assert result == {"role": "user", "content": "Result of read_file:\ntext"}
    shapes = made["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [set(shape["properties"]) for shape in shapes] == [{"tool", "arguments"}, {"answer"}]
    assert "response_format" not in body(tools_by_schema=True, no_response_format=True)
    assert reply_format(()) is None


@pytest.mark.requirement("F57")
@pytest.mark.parametrize(
    ("text", "answer", "call"),
    [
        ('{"tool": "read_file", "arguments": {"path": "a"}}', "", ("read_file", '{"path": "a"}')),
        ('Sure:\n```json\n{"tool": "shell", "arguments": {}}\n```', "", ("shell", "{}")),
        ('{"tool": "shell"}', "", ("shell", "{}")),
        ('{"tool": "shell", "arguments": "ls"}', "", ("shell", '"ls"')),
        ('{"answer": "All is well {really}"}', "All is well {really}", None),
        ("All is well", "All is well", None),
        ('{"other": 1}', '{"other": 1}', None),
        ("[1, 2]", "[1, 2]", None),
        ("{", "{", None),
        ("", "", None),
    ],
)
def test_an_answer_is_read_as_a_call_or_as_text(text: str, answer: str, call: tuple[str, str] | None) -> None:
    said, calls = read_reply(text)
    assert said == answer
    assert [(made.name, made.arguments) for made in calls] == ([] if call is None else [call])


@pytest.mark.requirement("F57")
def test_a_refused_schema_is_found_only_where_one_was_sent() -> None:
    found = refused_for("Unknown field: response_format", {"tools_by_schema": True})
    assert found is not None
    assert found.name == "no_response_format"


# What is remembered, and what it costs


@pytest.mark.parametrize("text", ["", "[]", "{", '{"quirks": 1}', '{"quirks": {"x": 1, "tool_names": []}}', "\0"])
def test_a_memory_that_cannot_be_read_knows_nothing(text: str, tmp_path: Path) -> None:
    memory = ModelMemory(tmp_path, "http://host/v1", "m")
    memory.set_context_window(10)
    [file] = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text(text)
    known = ModelMemory(tmp_path, "http://host/v1", "m").known
    assert (dict(known.quirks), known.context_window) == ({}, None)


def test_a_memory_that_cannot_be_written_holds_for_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memory = ModelMemory(tmp_path / "file" / "models", "http://host/v1", "m")
    memory.add_quirk(QUIRKS[0])
    assert dict(memory.known.quirks) == {QUIRKS[0].name: True}


def test_forgetting_leaves_nothing_behind(tmp_path: Path) -> None:
    memory = ModelMemory(tmp_path, "http://host/v1", "m")
    memory.add_quirk(QUIRKS[0])
    memory.forget()
    assert memory.known.quirks == {}
    assert not list(tmp_path.iterdir())


def test_prices_are_per_million_tokens_and_cached_input_may_be_cheaper() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    assert Prices(input=2.0, output=10.0).of(usage) == pytest.approx(3.0)
    assert Prices(input=2.0, output=10.0, cached_input=0.5).of(usage) == pytest.approx(2.4)
