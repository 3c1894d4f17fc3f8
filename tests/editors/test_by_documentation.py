"""The files for editors that cannot be installed here: they parse, and they start the server."""

import json
import subprocess
import tomllib

from tests.editors.project import EXAMPLES
from tests.flows.test_command_line import COMMAND


def test_helix_and_zed_start_the_server_with_a_command_that_exists() -> None:
    helix = tomllib.loads((EXAMPLES / "helix" / "languages.toml").read_text(encoding="utf-8"))
    zed = json.loads((EXAMPLES / "zed" / "settings.json").read_text(encoding="utf-8"))
    server = helix["language-server"]["agent-lsp"]
    binary = zed["lsp"]["pylsp"]["binary"]

    assert "agent-lsp" in helix["language"][0]["language-servers"]
    assert "pylsp" in zed["languages"]["Python"]["language_servers"]
    for command in ([server["command"], *server["args"]], [binary["path"], *binary["arguments"]]):
        assert command[0] == "agent-lsp"
        assert subprocess.run([*COMMAND, *command[1:], "--help"], capture_output=True, check=False).returncode == 0
