"""``agent-lsp doctor`` against real servers, and ``agent-lsp schema``."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_lsp.settings.file import SettingsFile, read_settings_file
from tests.flows.test_command_line import COMMAND, environment
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.providers import PROVIDERS
from tests.support.providers.base import Provider, ProviderServer, Turn, refused

BY_NAME = {provider.name: provider for provider in PROVIDERS}
CALL = Turn(calls=(("report", {"word": "ready"}),))
COUNT = Turn(text="one two three four five six seven eight nine ten")


def doctor(
    tmp_path: Path, base_url: str = "", *arguments: str, **variables: str
) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    """The exit code, and the checks by name."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    given = environment(tmp_path) | ({"OPENAI_BASE_URL": base_url, "AGENT_LSP_MODEL": "m"} if base_url else {})
    ran = subprocess.run(
        [*COMMAND, "doctor", "--json", *arguments],
        cwd=work,
        env=given | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    report = json.loads(ran.stdout)
    assert report["ok"] == (ran.returncode == 0)
    checks: dict[str, list[dict[str, Any]]] = {}
    for check in report["checks"]:
        checks.setdefault(check["name"], []).append(check)
    return ran.returncode, checks


@pytest.mark.requirement("S1-doctor", "F55")
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_doctor_finds_the_quirks_of_a_server_and_knows_them_the_next_time(provider: Provider, tmp_path: Path) -> None:
    with ProviderServer(provider, CALL, COUNT, CALL, COUNT) as server:
        first, _ = doctor(tmp_path, server.base_url)
        refusals = len(server.refused)
        second, checks = doctor(tmp_path, server.base_url)
        server.assert_consumed()
    assert (first, second, len(server.refused)) == (0, 0, refusals)
    assert checks["tool calls"][0]["status"] == "ok"
    assert checks["streaming"][0]["status"] == "ok"
    found = {check["text"].split(" = ")[0] for check in checks.get("quirk", ())}
    assert len(found) == refusals
    assert found <= set(provider.quirks)
    assert all("found on 2" in check["text"] for check in checks.get("quirk", ()))


@pytest.mark.requirement("S1-doctor", "F57")
def test_doctor_finds_that_a_server_ignores_tools(tmp_path: Path) -> None:
    """It takes them and never calls one; held to a schema, it does."""
    as_json = Turn(text=json.dumps({"tool": "report", "arguments": {"word": "ready"}}))
    answer = Turn(text=json.dumps({"answer": "one two three"}))
    with ProviderServer(Provider(), Turn(text="I would call it"), as_json, answer) as server:
        code, checks = doctor(tmp_path, server.base_url)
        server.assert_consumed()
        bodies = [request.body for request in server.requests]
    assert code == 0
    assert ["tools" in body for body in bodies] == [True, False, False]
    assert bodies[1]["response_format"]["type"] == "json_schema"
    assert "by schema" in checks["tool calls"][0]["text"]
    assert checks["quirk"][0]["text"].startswith("tools_by_schema = true (found on 2")


@pytest.mark.requirement("S1-doctor", "F56")
@pytest.mark.parametrize(
    ("answer", "told", "setting"),
    [
        (BY_NAME["openai"].bad_key(), "refused the API key", "OPENAI_API_KEY"),
        (BY_NAME["mistral"].unknown_model(), "does not know the model m", "model.name"),
        (refused(404, {"detail": "Not Found"}), "has no chat completions there", "model.base_url"),
    ],
    ids=["key", "model", "address"],
)
def test_doctor_says_which_setting_of_the_endpoint_is_wrong(
    answer: Answer, told: str, setting: str, tmp_path: Path
) -> None:
    with ProviderServer(Provider(), answer) as server:
        code, checks = doctor(tmp_path, server.base_url, OPENAI_API_KEY="sk-wrong-key-1234")
    [endpoint] = checks["endpoint"]
    assert (code, endpoint["status"]) == (1, "fail")
    assert told in endpoint["text"]
    assert setting in endpoint["text"]
    assert "sk-wrong" not in json.dumps(checks)


@pytest.mark.requirement("S1-doctor", "F56")
def test_doctor_tells_a_server_that_is_down_and_what_is_not_set(tmp_path: Path) -> None:
    with OpenAIServer() as stopped:
        base_url = stopped.base_url
    down, checks = doctor(tmp_path, base_url)
    unset, without = doctor(tmp_path)
    assert (down, unset) == (1, 1)
    assert "Check that it runs, and model.base_url" in checks["endpoint"][0]["text"]
    assert without["model"][0] == {
        "name": "model",
        "status": "fail",
        "text": without["model"][0]["text"],
        "advice": "",
        "setting": "model.name",
    }
    assert "endpoint" not in without


@pytest.mark.requirement("S1-doctor")
def test_doctor_looks_at_settings_programs_and_validators(tmp_path: Path) -> None:
    settings = tmp_path / "work" / ".agent-lsp" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        '{"agent": {"max_turns": "many"}, "validation": {"validators": [{"name": "v", "command": "v"}]}}'
    )
    code, checks = doctor(tmp_path, "http://127.0.0.1:9/v1", "--offline")
    assert code == 0
    assert checks["settings"][0]["status"] == "warn"
    assert checks["settings"][0]["setting"] == "agent.max_turns"
    assert "settings.json:1:" in checks["settings"][0]["text"]
    assert checks["ripgrep"][0]["status"] == "ok"
    assert checks["git"][0]["status"] == "warn"
    assert checks["validators"] == [
        {
            "name": "validators",
            "status": "warn",
            "text": "v; not trusted yet, so not run",
            "advice": "agent-lsp trust",
            "setting": "validation",
        }
    ]
    assert checks["state"][0]["status"] == "ok"


@pytest.mark.requirement("S1-doctor")
def test_doctor_prints_a_line_for_each_check(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*COMMAND, "doctor", "--offline"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert lines[0] == "ok    settings   nothing is set; the defaults hold"
    assert lines[1].startswith("fail  model      No model is set; give --model NAME")
    assert lines[2].strip() == "→ setting: model.name"


SPECIFIED = """{
  "$schema": "https://example.org/schema.json",
  "model": {"name": "m", "base_url": null, "api_key_env": "KEY", "context_window": 8192, "temperature": 0.5, "quirks": {
    "no_stream_options": true, "echo_reasoning": "reasoning"}, "prices": {"input": 2.5, "output": 10}},
  "permissions": {"mode": "plan", "deny": ["read(**/.env)"], "ask": [], "allow": ["shell(git status *)"],
                  "additional_directories": [], "approval_timeout": 600},
  "hooks": {"PreToolUse": [{"type": "command", "command": "x", "matcher": "shell", "blocking": true, "timeout": 30}]},
  "hooks_http_allow": [],
  "validation": {"enabled": true, "detect": true, "max_rounds": 3, "timeout": 300, "baseline": true,
                 "validators": [{"name": "ruff", "command": "ruff check .", "paths": ["**/*.py"], "timeout": 60}]},
  "agent": {"max_turns": 50, "instructions": ["AGENTS.md"], "builtin_hooks": ["block-dangerous-bash"]},
  "sessions": {"keep_days": 30}
}"""


@pytest.mark.requirement("S1-schema")
def test_schema_knows_every_setting_that_the_program_reads(tmp_path: Path) -> None:
    ran = subprocess.run([*COMMAND, "schema"], env=environment(tmp_path), capture_output=True, text=True, check=True)
    schema = json.loads(ran.stdout)
    file = tmp_path / "settings.json"
    file.write_text(SPECIFIED)
    read = read_settings_file(file)
    assert isinstance(read, SettingsFile)

    for section, values in read.values.items():
        described = schema["properties"][section]
        if "$ref" in described:
            described = schema["$defs"][described["$ref"].rpartition("/")[2]]
            assert described["additionalProperties"] is False
            assert set(values) <= set(described["properties"])
    assert schema["additionalProperties"] is False
    assert set(read.values["hooks"]["PreToolUse"][0]) <= set(schema["$defs"]["Hook"]["properties"])
    quirks = schema["$defs"]["ModelSettings"]["properties"]["quirks"]
    assert set(read.values["model"]["quirks"]) <= set(quirks["propertyNames"]["enum"])


@pytest.mark.requirement("S1-doctor", "S1-schema")
@pytest.mark.parametrize("command", ["doctor", "schema"])
def test_help_of_a_command_has_an_example(command: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [*COMMAND, command, "--help"], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert f"example: agent-lsp {command}" in ran.stdout
