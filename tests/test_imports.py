"""What the quick answers load: import cost is a feature."""

import json
import subprocess
import sys

_HEAVY = ("openai", "pydantic", "httpx2", "json5", "pathspec", "platformdirs", "mcp", "rich")


def _loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running some code."""
    report = "import sys, json; json.dump(sorted(sys.modules), sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stderr))


def _own(modules: set[str]) -> list[str]:
    return sorted(module for module in modules if module.split(".")[0] == "agent_lsp")


def test_version_loads_nothing_but_itself() -> None:
    loaded = _loaded(
        "sys = __import__('sys'); sys.argv = ['agent-lsp', '--version']; import agent_lsp.__main__ as m; m.main()"
    )

    assert _own(loaded) == ["agent_lsp", "agent_lsp.__main__"]
    assert not loaded & {"argparse", "asyncio", *_HEAVY}


def test_initialize_loads_what_it_needs_to_answer() -> None:
    params: dict[str, object] = {"processId": None, "rootUri": None, "capabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "agent_lsp", "serve"],
        input=f"Content-Length: {len(body)}\r\n\r\n{body}",
        capture_output=True,
        text=True,
        check=False,
    )
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")}

    assert '"capabilities"' in ran.stdout
    assert _own(loaded) == [
        "agent_lsp",
        "agent_lsp.cli",
        "agent_lsp.cli.exit_codes",
        "agent_lsp.cli.main",
        "agent_lsp.errors",
        "agent_lsp.lsp",
        "agent_lsp.lsp.code_actions",
        "agent_lsp.lsp.code_lens",
        "agent_lsp.lsp.commands",
        "agent_lsp.lsp.diagnostics",
        "agent_lsp.lsp.documents",
        "agent_lsp.lsp.front",
        "agent_lsp.lsp.jobs",
        "agent_lsp.lsp.jsonrpc",
        "agent_lsp.lsp.lenient",
        "agent_lsp.lsp.options",
        "agent_lsp.lsp.problems",
        "agent_lsp.lsp.progress",
        "agent_lsp.lsp.protocol",
        "agent_lsp.lsp.rpc",
        "agent_lsp.lsp.server",
        "agent_lsp.lsp.sessions",
        "agent_lsp.lsp.setup",
        "agent_lsp.lsp.transport",
        "agent_lsp.lsp.validation",
        "agent_lsp.workspace",
    ]
    assert not loaded & set(_HEAVY)


def test_listing_hooks_loads_no_model_and_no_server() -> None:
    loaded = _loaded(
        "sys = __import__('sys'); sys.argv = ['agent-lsp', 'hooks', 'list']; import agent_lsp.__main__ as m; m.main()"
    )

    assert not loaded & {"anyio", "asyncio", "openai", "pydantic", "httpcore2", "lsprotocol", "pygls", "pathspec"}
