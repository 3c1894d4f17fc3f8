"""What the user agreed to is kept by content, in the user's own directory; an untrusted workspace runs nothing."""

import logging
from pathlib import Path

import pytest

from agent_lsp.approvals import ApprovalReply
from agent_lsp.hooks.trust import TrustItem
from agent_lsp.models.scripted import ScriptedModel, calls, says
from agent_lsp.session.assemble import SessionOptions, open_session
from agent_lsp.session.inspect import list_hooks
from agent_lsp.session.trust import workspace_trust
from agent_lsp.settings.load import load_settings
from agent_lsp.settings.trust import TrustEverything, TrustStore
from agent_lsp.workspace import Place
from tests.support.harness import RecordingApprover


def item(letter: str) -> TrustItem:
    return TrustItem(text=f"item {letter}", place=Place(source="settings.json", line=1, column=2), digest=letter * 64)


A, B = item("a"), item("b")


@pytest.mark.requirement("F70", "B42")
def test_store_remembers_by_digest_and_another_store_finds_it(tmp_path: Path) -> None:
    TrustStore(tmp_path / "state" / "trust").grant([A])

    other = TrustStore(tmp_path / "state" / "trust")
    assert (other.covers(A.digest), other.covers(B.digest)) == (True, False)


@pytest.mark.requirement("F70")
def test_stores_of_two_processes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    first, second = TrustStore(tmp_path), TrustStore(tmp_path)
    first.grant([A])
    second.grant([B])
    first.grant([A])

    assert all(store.covers(thing.digest) for store in (first, second) for thing in (A, B))


@pytest.mark.requirement("F70")
def test_revoked_trust_is_gone_everywhere(tmp_path: Path) -> None:
    first, second = TrustStore(tmp_path), TrustStore(tmp_path)
    first.grant([A, B])

    assert second.revoke([A.digest, "c" * 64]) == 1
    assert (first.covers(A.digest), first.covers(B.digest)) == (False, True)


@pytest.mark.requirement("F70", "F74")
def test_records_are_private_and_readable_by_people(tmp_path: Path) -> None:
    TrustStore(tmp_path / "trust").grant([A])

    (record,) = (tmp_path / "trust").iterdir()
    assert ((tmp_path / "trust").stat().st_mode & 0o777, record.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "item a" in record.read_text()
    assert "settings.json:1:2" in record.read_text()


@pytest.mark.requirement("F70")
def test_trust_that_cannot_be_saved_holds_for_the_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "trust").write_text("a file where the directory should be")
    store = TrustStore(tmp_path / "trust")

    with caplog.at_level(logging.WARNING):
        store.grant([A])

    assert (store.covers(A.digest), store.covers(B.digest)) == (True, False)
    assert not TrustStore(tmp_path / "trust").covers(A.digest)
    assert "holds for this process only" in caplog.text


@pytest.mark.requirement("F70")
def test_trust_that_cannot_be_saved_can_be_revoked(tmp_path: Path) -> None:
    (tmp_path / "trust").write_text("a file where the directory should be")
    store = TrustStore(tmp_path / "trust")
    store.grant([A])

    assert store.revoke([A.digest]) == 1
    assert not store.covers(A.digest)


# --- a workspace with hooks


class Hooked:
    """A workspace whose settings have a hook on each of several events, and widen what is allowed."""

    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification", "SessionEnd")

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = root / ".agent-lsp" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.write("touch ran-$HOOK_EVENT")

    def write(self, command: str) -> None:
        hooks = ", ".join(f'"{event}": [{{"type": "command", "command": "{command}"}}]' for event in self.events)
        self.settings.write_text(f'{{"hooks": {{{hooks}}}, "permissions": {{"allow": ["shell"]}}}}')

    async def run(self, approver: RecordingApprover, *, trusted: bool = False) -> None:
        """One turn with one tool call, from opening to closing."""
        options = SessionOptions(
            root=self.root,
            approver=approver,
            model=ScriptedModel([calls(("list_files", {})), says("done")]),
            trusted=trusted,
            environ={"PATH": "/usr/bin:/bin"},
        )
        session = open_session(options)
        async with session.opened(drain=10):
            assert (await session.run("go")).text == "done"

    def ran(self) -> list[str]:
        return sorted(path.name.removeprefix("ran-") for path in self.root.glob("ran-*"))


@pytest.fixture
def hooked(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path / "work")


@pytest.mark.requirement("F70", "B42")
async def test_headless_run_of_an_untrusted_workspace_executes_nothing(hooked: Hooked) -> None:
    approver = RecordingApprover()

    await hooked.run(approver)

    assert hooked.ran() == []
    assert len(approver.requests) == 1


@pytest.mark.requirement("F70", "B42")
async def test_one_yes_admits_everything_and_is_remembered(hooked: Hooked) -> None:
    approver = RecordingApprover(ApprovalReply(allowed=True))

    await hooked.run(approver)

    assert hooked.ran() == sorted(hooked.events)
    (request,) = approver.requests
    listed = request.arguments["would run"]
    assert isinstance(listed, list | tuple)
    assert len(listed) == len(hooked.events) + 1
    assert any('permissions.allow "shell"' in str(line) for line in listed)

    again = RecordingApprover()
    await hooked.run(again)
    assert again.requests == []


@pytest.mark.requirement("F70")
async def test_run_that_is_told_to_trust_asks_nobody_and_remembers_nothing(hooked: Hooked) -> None:
    approver = RecordingApprover()

    await hooked.run(approver, trusted=True)

    assert (hooked.ran(), approver.requests) == (sorted(hooked.events), [])
    assert len(workspace_trust(hooked.root).waiting) == len(hooked.events) + 1


@pytest.mark.requirement("F70")
async def test_changed_command_of_a_trusted_workspace_asks_again(hooked: Hooked) -> None:
    workspace_trust(hooked.root).grant()
    hooked.write("touch ran-evil")
    approver = RecordingApprover()

    await hooked.run(approver)

    assert (hooked.ran(), len(approver.requests)) == ([], 1)


@pytest.mark.requirement("F11", "F70")
def test_list_of_hooks_says_which_are_trusted(hooked: Hooked) -> None:
    def trusted() -> set[bool]:
        return {state.trusted for state in list_hooks(hooked.root).hooks}

    before = trusted()
    trust = workspace_trust(hooked.root)
    trust.grant()
    granted = trusted()
    revoked = trust.revoke()

    assert (before, granted, trusted(), revoked) == ({False}, {True}, {False}, len(trust.items))


@pytest.mark.requirement("F70")
def test_trust_in_one_workspace_is_none_in_its_copy(tmp_path: Path) -> None:
    original, copy = Hooked(tmp_path / "original"), Hooked(tmp_path / "copy")
    workspace_trust(original.root).grant()

    assert workspace_trust(original.root).waiting == ()
    assert workspace_trust(copy.root).waiting == workspace_trust(copy.root).items != ()


@pytest.mark.requirement("F70", "B42")
def test_hooks_of_the_user_are_listed_beside_those_of_the_workspace(tmp_path: Path, hooked: Hooked) -> None:
    user = tmp_path / "user"
    user.mkdir()
    (user / "settings.json").write_text('{"hooks": {"PreToolUse": [{"type": "command", "command": "mine"}]}}')

    loaded = load_settings(hooked.root, user_directory=user, trust=TrustEverything(), environ={})

    assert loaded.trust_items[0].text == "PreToolUse command: mine"
    assert len({trust_item.digest for trust_item in loaded.trust_items}) == len(hooked.events) + 2
