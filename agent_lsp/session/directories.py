"""Where the user's own files lie, by the platform's convention."""

from pathlib import Path

import platformdirs

from agent_lsp.settings.trust import TrustStore


def config_directory() -> Path:
    """Where the user's settings lie."""
    return platformdirs.user_config_path("agent-lsp", appauthor=False)


def state_directory() -> Path:
    """Where trust, remembered approvals and transcripts lie."""
    return platformdirs.user_state_path("agent-lsp", appauthor=False)


def trust_store() -> TrustStore:
    """What the user has agreed to let workspaces execute."""
    return TrustStore(state_directory() / "trust")
