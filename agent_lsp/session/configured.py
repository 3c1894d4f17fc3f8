"""What a workspace's settings come to now, for whoever asks without a session."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_lsp.session.directories import config_directory, trust_store
from agent_lsp.settings.load import LoadedSettings, load_settings


def workspace_settings(root: Path, editor: Sequence[Mapping[str, Any]] = ()) -> LoadedSettings:
    """Load all layers but the environment's; ``editor`` are the editor's layers, the weaker first."""
    return load_settings(
        root.resolve(), user_directory=config_directory(), trust=trust_store(), editor=editor, environ={}
    )
