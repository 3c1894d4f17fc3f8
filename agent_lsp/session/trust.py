"""The trust in one workspace: what its settings would execute or widen, and what the user said to that."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_lsp.hooks.trust import TrustItem as TrustItem
from agent_lsp.session.configured import workspace_settings
from agent_lsp.session.directories import trust_store
from agent_lsp.session.validation import project_validators
from agent_lsp.settings.trust import validator_item


class WorkspaceTrust:
    """A snapshot of what there is to decide. ``waiting`` are the items that are not trusted."""

    def __init__(self, items: tuple[TrustItem, ...]) -> None:
        self._store = trust_store()
        self.items = items

    @property
    def waiting(self) -> tuple[TrustItem, ...]:
        return tuple(item for item in self.items if not self._store.covers(item.digest))

    def grant(self) -> None:
        """Trust exactly these items."""
        self._store.grant(self.waiting)

    def revoke(self) -> int:
        """Trust none of them any longer; returns how many were trusted."""
        return self._store.revoke(item.digest for item in self.items)


def workspace_trust(root: Path, editor: Sequence[Mapping[str, Any]] = ()) -> WorkspaceTrust:
    """What the settings of a workspace would execute or widen now."""
    loaded = workspace_settings(root, editor)
    configured = {item.digest for item in loaded.trust_items}
    found = (validator_item(validator, root.resolve()) for validator in project_validators(loaded, root.resolve()))
    return WorkspaceTrust((*loaded.trust_items, *(item for item in found if item.digest not in configured)))
