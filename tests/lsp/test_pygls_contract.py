"""What the server relies on in pygls, and what it replaces. A failure here means: read what a new pygls has changed.

Replacing a method takes knowing what it did, and calling one takes knowing what it does; so both are pinned.
"""

import hashlib
import inspect
import json
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.feature_manager import FeatureManager, wrap_with_server
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from agent_lsp.lsp.protocol import AgentProtocol
from agent_lsp.lsp.rpc import RpcProtocol

PINNED: dict[Any, str] = {
    LanguageServerProtocol._handle_request: "74d28ad48dd2",
    LanguageServerProtocol._handle_notification: "d116395477c5",
    LanguageServerProtocol._handle_response: "65a45fcee629",
    LanguageServerProtocol._send_response: "b799bb966ca7",
    LanguageServerProtocol._send_data: "40e0a5bb7095",
    LanguageServerProtocol._serialize_message: "075c32e9ae36",
    LanguageServerProtocol.notify: "039d9533e960",
    LanguageServerProtocol.send_request: "0e4491683e0f",
    LanguageServerProtocol._register_builtin_features: "23165f2d6198",
    LanguageServerProtocol.__init__: "6a96fc574b52",
    LanguageServerProtocol.send_request_async: "e7510ff3bded",
    LanguageServerProtocol._get_handler: "ae85700c0733",
    LanguageServerProtocol.get_result_type: "9561c69b3ae8",
    LanguageServerProtocol.lsp_initialize: "25d45da16abe",
    LanguageServerProtocol.lsp_set_trace: "d221ab320307",
    LanguageServerProtocol.lsp_workspace__did_change_workspace_folders: "ae5a0d6d0d51",
    LanguageServerProtocol.lsp_shutdown: "86ec7ca1055c",
    LanguageServerProtocol.lsp_exit: "229d16e062e3",
    LanguageServerProtocol.lsp_workspace__execute_command: "b8471858fcb0",
    LanguageServerProtocol.lsp_work_done_progress_cancel: "973f4beb1dc0",
    LanguageServerProtocol.lsp_text_document__did_open: "6771d1483cdf",
    LanguageServerProtocol.lsp_text_document__did_change: "81a0591b8fdf",
    LanguageServerProtocol.lsp_text_document__did_close: "1308de112576",
    FeatureManager.feature: "880ab061c77d",
    FeatureManager.command: "410b1f9c2e0d",
    wrap_with_server: "aaa2d3b4a247",
    ServerCapabilitiesBuilder.choose_position_encoding: "611583c48538",
    LanguageServer.report_server_error: "bb8c3433a619",
}


def digest(source: Any) -> str:
    return hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:12]


def test_pygls_is_a_version_this_was_written_for() -> None:
    assert version("pygls").startswith("2.1.")


def test_every_replaced_method_is_pinned() -> None:
    replaced = {
        name
        for layer in (RpcProtocol, AgentProtocol)
        for name, value in vars(layer).items()
        if inspect.isfunction(value) and hasattr(LanguageServerProtocol, name) and name != "__init__"
    }
    assert replaced <= {source.__name__ for source in PINNED}


@pytest.mark.parametrize(("source", "expected"), PINNED.items(), ids=lambda value: getattr(value, "__qualname__", ""))
def test_method_of_pygls_is_as_it_was(source: Any, expected: str) -> None:
    assert digest(source) == expected


def test_import_of_the_server_loads_nothing_of_the_agent_and_no_model_client() -> None:
    program = "import agent_lsp.lsp.server, json, sys; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout
    loaded = json.loads(output)
    heavy = {"openai", "pydantic", "mcp", "rich", "httpx2", "pathspec", "hypothesis"}
    assert heavy & set(loaded) == set()
    assert [name for name in loaded if name.startswith("agent_lsp.") and not name.startswith("agent_lsp.lsp")] == [
        "agent_lsp.errors",
        "agent_lsp.workspace",
    ]
