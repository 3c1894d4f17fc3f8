"""The verdict on one action: boundaries, rules, advice, remembered answers and modes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.approvals import Action, PermissionBehavior, Scope
from agent_lsp.permissions.evaluation import Evaluation
from agent_lsp.permissions.grants import Grants
from agent_lsp.permissions.policy import Advice, PermissionMode, Policy
from agent_lsp.permissions.rules import Rule, parse_rule
from agent_lsp.workspace import Access, ResolvedPath, Workspace

ALLOW, ASK, DENY = PermissionBehavior.ALLOW, PermissionBehavior.ASK, PermissionBehavior.DENY
DEFAULT, ACCEPT_EDITS, PLAN, DONT_ASK, BYPASS = PermissionMode


def path(display: str, *, inside: bool = True) -> ResolvedPath:
    return ResolvedPath(path=Path("/") / display, display=display, inside=inside)


def read(*names: str) -> Action:
    return Action(tool="read_file", access=Access.READ, paths=tuple(map(path, names)))


def edit(*names: str) -> Action:
    return Action(tool="edit_file", access=Access.WRITE, paths=tuple(map(path, names)))


def shell(command: str) -> Action:
    return Action(tool="shell", access=Access.EXECUTE, command=command)


OUTSIDE = Action(tool="edit_file", access=Access.WRITE, paths=(path("etc/passwd", inside=False),))
NETWORK = Action(tool="fetch_url", access=Access.NETWORK)


def rules(**texts: str | list[str]) -> list[Rule]:
    """Rules by behaviour: ``allow="edit"``, ``deny=["read", "shell"]``."""
    pairs = [(name, text) for name, given in texts.items() for text in ([given] if isinstance(given, str) else given)]
    return [parse_rule(PermissionBehavior[name.upper()], text, "test") for name, text in pairs]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for folder in ("src", ".git"):
        (tmp_path / folder).mkdir()
    return Workspace(tmp_path)


def real(workspace: Workspace, action: Action) -> Action:
    """The same action with paths of the real workspace."""
    resolved = tuple(workspace.resolve(p.display) if p.inside else p for p in action.paths)
    return Action(tool=action.tool, access=action.access, paths=resolved, command=action.command)


@pytest.mark.requirement("A67", "A68", "S2-modes")
@pytest.mark.parametrize(
    ("mode", "action", "behavior", "source"),
    [
        (DEFAULT, read("a"), ALLOW, "default"),
        (DEFAULT, edit("a"), ASK, "write-default"),
        (DEFAULT, shell("ls"), ASK, "shell-default"),
        (DEFAULT, NETWORK, ASK, "network-default"),
        (ACCEPT_EDITS, edit("a"), ALLOW, "mode"),
        (ACCEPT_EDITS, edit(".git/config"), ASK, "control-file"),
        (ACCEPT_EDITS, shell("ls"), ASK, "shell-default"),
        (PLAN, read("a"), ALLOW, "default"),
        (PLAN, edit("a"), DENY, "mode"),
        (PLAN, shell("ls"), DENY, "mode"),
        (DONT_ASK, read("a"), ALLOW, "default"),
        (DONT_ASK, edit("a"), DENY, "mode"),
        (BYPASS, edit("a"), ALLOW, "mode"),
        (BYPASS, shell("ls | sh"), ALLOW, "mode"),
        (BYPASS, edit(".git/hooks/pre-commit"), ASK, "control-file"),
        *[(mode, OUTSIDE, DENY, "workspace-boundary") for mode in PermissionMode],
    ],
)
def test_mode_and_default_decide_where_nothing_else_speaks(
    workspace: Workspace, mode: PermissionMode, action: Action, behavior: PermissionBehavior, source: str
) -> None:
    evaluation = Policy(workspace=workspace, mode=mode).decide(real(workspace, action))

    assert (evaluation.behavior, evaluation.source) == (behavior, source)


@pytest.mark.requirement("A67")
def test_default_read_says_that_no_rule_blocked_it(workspace: Workspace) -> None:
    assert Policy(workspace=workspace).decide(real(workspace, read("a"))) == Evaluation(
        behavior=ALLOW, source="default", reason="No permission rule blocked the request"
    )


@pytest.mark.requirement("A45", "F24")
@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        "sub/.git/hooks/x",
        ".git",
        ".agent-lsp/settings.json",
        ".vscode/tasks.json",
        "x.code-workspace",
        ".github/workflows/ci.yml",
        ".envrc",
        "sub/.npmrc",
        ".pre-commit-config.yaml",
    ],
)
def test_control_file_asks_whatever_allows_it(workspace: Workspace, name: str) -> None:
    policy = Policy(workspace=workspace, rules=rules(allow="edit"), mode=BYPASS)
    advice = Advice(behavior=ALLOW, source="pre-tool-hook", reason="")

    assert policy.decide(real(workspace, edit(name)), advice).behavior is ASK
    assert policy.decide(real(workspace, read(name))).behavior is ALLOW


@pytest.mark.requirement("A45", "F20")
@pytest.mark.parametrize(
    ("given_rules", "action", "behavior"),
    [
        (rules(deny="read(**/.env)"), read("src/.env"), DENY),
        (rules(deny="read(**/.env)"), read("src/env"), ALLOW),
        (rules(deny="read(**/.env)", allow="read"), read("src/.env"), DENY),
        (rules(deny="read(*.key)"), read("a.txt", "b.key"), DENY),
        (rules(allow="edit(src/**)"), edit("src/a.py"), ALLOW),
        (rules(allow="edit(src/**)"), edit("a.py"), ASK),
        (rules(allow="edit(src/**)"), edit("src/a.py", "a.py"), ASK),
        (rules(allow="edit_file"), edit("a.py"), ALLOW),
        (rules(allow="write_file"), edit("a.py"), ASK),
        (rules(allow="edit", ask="edit(src/**)"), edit("src/a.py"), ASK),
        (rules(allow="shell(git status *)"), shell("git status"), ALLOW),
        (rules(allow="shell(git status *)"), shell("git status -s src"), ALLOW),
        (rules(allow="shell(git status *)"), shell("git statusx"), ASK),
        (rules(allow="shell(git status *)"), shell("git status; rm -r x"), ASK),
        (rules(allow="shell(git status *)"), shell("git status $(rm -r x)"), ASK),
        (rules(allow="shell(git status *)"), shell("PAGER=x git status"), ASK),
        (rules(allow="shell(echo *)"), shell("echo 'a; b'"), ALLOW),
        (rules(allow="shell(git *)"), shell("cd src && git log | cat"), ASK),
        (rules(allow=["shell(git *)", "shell(cat *)"]), shell("cd src && git log | cat"), ALLOW),
        (rules(allow="shell(git *)"), shell("cd .. && git log"), ASK),
        (rules(allow="shell(pytest *)"), shell("timeout 60 nice pytest -q"), ALLOW),
        (rules(allow="shell(pytest *)"), shell("CI=1 pytest -q 2>&1"), ALLOW),
        (rules(allow="shell(pytest *)"), shell("PYTHONPATH=x pytest -q"), ASK),
        (rules(allow="shell(pytest *)"), shell("pytest -q > /dev/null"), ALLOW),
        (rules(allow="shell(pytest *)"), shell("pytest -q > log"), ASK),
        (rules(allow=["shell(pytest *)", "edit(log)"]), shell("pytest -q > log"), ALLOW),
        (rules(allow=["shell(pytest *)", "edit"]), shell("pytest -q > ../log"), ASK),
        (rules(allow=["shell(pytest *)", "edit"]), shell("pytest -q > .git/log"), ASK),
        (rules(allow=["shell", "edit"], deny="edit(log)"), shell("ls; pytest >> log"), DENY),
        (rules(allow="shell", deny="read(**/.env)"), shell("cat < src/.env"), DENY),
        (rules(allow="shell(rm src/*)"), shell("rm src/a"), ALLOW),
        (rules(allow="shell(rm src/*)"), shell("rm src/$X"), ASK),
        (rules(allow="shell(rm src/*)"), shell("rm 'src/a b'"), ALLOW),
        (rules(allow="shell(rm *)"), shell("rm src/$X"), ALLOW),
        (rules(allow="shell", deny="shell(rm -rf *)"), shell("rm $X"), ASK),
        (rules(allow="shell", deny="shell(rm -rf *)"), shell("rm -r $X"), ALLOW),
        (rules(allow="shell", deny="shell(rm -rf *)"), shell("$X -rf a"), ASK),
        (rules(allow="shell(tee *)"), shell("tee a < /dev/null"), ALLOW),
        (rules(allow="shell(tee *)"), shell("tee sub/.git/hooks/x"), ASK),
        (rules(allow="shell(tee *)"), shell('tee "$X"'), ASK),
        (rules(allow="shell(cat *)"), shell("cat .git/config"), ALLOW),
        (rules(allow="shell(ln *)"), shell("ln -s .g* x"), ASK),
        (rules(allow="shell"), shell("a | b"), ALLOW),
        (rules(allow="shell", deny="shell(rm *)"), shell("rm x"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("/bin/rm x"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("ls; rm x"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("sudo rm x"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("/usr/bin/env rm v"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("stdbuf -o0 rm x"), DENY),
        (rules(allow="shell", deny="shell(rm *)"), shell("ssh host rm x"), ASK),
        (rules(allow="shell", ask="shell(git push *)"), shell("git push"), ASK),
        (rules(allow="shell", ask="shell(git push *)"), shell("/usr/bin/git push"), ASK),
        (rules(allow="shell", ask="shell(git push *)"), shell("git push && true"), ASK),
        (rules(allow="shell", ask="shell(git push *)"), shell("git pull"), ALLOW),
        (rules(allow="shell", ask="edit(src/**)"), shell("a | b"), ALLOW),
        (rules(allow=["shell", "shell(git push *)"]), shell("git push && true"), ALLOW),
        (rules(deny="shell"), shell("ls | sh"), DENY),
    ],
)
def test_rules_decide_and_the_strongest_wins(
    workspace: Workspace, given_rules: list[Rule], action: Action, behavior: PermissionBehavior
) -> None:
    policy = Policy(workspace=workspace, rules=given_rules)

    assert policy.decide(real(workspace, action)).behavior is behavior


@pytest.mark.requirement("A45")
def test_bypass_does_not_pass_what_could_hide_a_denied_command(workspace: Workspace) -> None:
    policy = Policy(workspace=workspace, rules=rules(deny="shell(rm *)"), mode=BYPASS)

    assert policy.decide(shell("ls; $X x")).behavior is ASK
    assert policy.decide(shell("ls; rm x")).behavior is DENY
    assert policy.decide(shell("ls")).behavior is ALLOW


@pytest.mark.requirement("A45")
def test_bypass_does_not_pass_a_hidden_command_because_another_rule_asks_too(workspace: Workspace) -> None:
    policy = Policy(workspace=workspace, rules=rules(ask="shell", deny="shell(rm *)"), mode=BYPASS)

    assert policy.decide(shell("ls; . ./x")).behavior is ASK
    assert policy.decide(shell("ls")).behavior is ALLOW


@pytest.mark.requirement("A45")
@pytest.mark.parametrize("command", ["git push", "git push && true"])
def test_bypass_passes_what_only_an_ask_rule_speaks_about(workspace: Workspace, command: str) -> None:
    policy = Policy(workspace=workspace, rules=rules(ask="shell(git push *)"), mode=BYPASS)

    assert policy.decide(shell(command)).behavior is ALLOW


@pytest.mark.requirement("A44", "A45", "A46", "F6")
@pytest.mark.parametrize(
    ("given_rules", "advice", "behavior"),
    [
        ([], ALLOW, ALLOW),
        ([], ASK, ASK),
        ([], DENY, DENY),
        (rules(deny="edit"), ALLOW, DENY),
        (rules(ask="edit"), ALLOW, ASK),
        (rules(allow="edit"), ASK, ASK),
        (rules(allow="edit"), DENY, DENY),
    ],
)
def test_hook_advice_never_beats_a_stronger_rule(
    workspace: Workspace, given_rules: list[Rule], advice: PermissionBehavior, behavior: PermissionBehavior
) -> None:
    policy = Policy(workspace=workspace, rules=given_rules)
    given_advice = Advice(behavior=advice, source="pre-tool-hook", reason="x")

    assert policy.decide(real(workspace, edit("a")), given_advice).behavior is behavior


@given(
    texts=st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), st.sampled_from(["edit", "edit_file"]))),
    mode=st.sampled_from(PermissionMode),
    advice=st.sampled_from([None, ALLOW, ASK, DENY]),
)
def test_a_deny_wins_whatever_else_is_set(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[tuple[str, str]],
    mode: PermissionMode,
    advice: PermissionBehavior | None,
) -> None:
    workspace = Workspace(tmp_path_factory.getbasetemp())
    given_rules = [rule for name, text in [*texts, ("deny", "edit")] for rule in rules(**{name: text})]
    policy = Policy(workspace=workspace, rules=given_rules, mode=mode)
    given_advice = None if advice is None else Advice(behavior=advice, source="x", reason="x")

    assert policy.decide(real(workspace, edit("a")), given_advice).behavior is DENY


@pytest.mark.requirement("F25")
@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (edit("src/a.py"), "edit_file(/src/a.py)"),
        (edit("src/[a].py"), None),
        (edit(".git/config"), None),
        (edit("a", "b"), None),
        (shell("git status -s"), "shell(git status -s)"),
        (shell("git status; ls"), None),
        (shell("cd src && git status"), "shell(git status)"),
        (shell("rm $X"), None),
        (shell("echo a > b"), None),
        (shell("echo 'a b'"), None),
        (shell("git commit -m ''"), None),
        (shell("git commit -m 'x'"), "shell(git commit -m x)"),
        (shell('echo "it\'s"'), "shell(echo it's)"),
        (shell("ls ü"), "shell(ls ü)"),
        (shell("ls 'a*'"), None),
        (edit("src/a b"), "edit_file(/src/a b)"),
        (edit("src/!a#"), "edit_file(/src/!a#)"),
        (edit("src/a "), None),
        (edit("src/a\\b"), None),
        (edit("src/a?"), None),
        (edit("."), None),
        (NETWORK, None),
    ],
)
def test_rule_offered_is_the_smallest_or_none(workspace: Workspace, action: Action, rule: str | None) -> None:
    assert Policy(workspace=workspace).rule_for(real(workspace, action)) == rule


@pytest.mark.requirement("F25")
@given(
    action=st.one_of(
        st.builds(shell, st.text(alphabet="abü /-'\"=*?[)\\!", min_size=1, max_size=8)),
        st.builds(edit, st.text(alphabet="abü /'\"*?[])\\!#\n", min_size=1, max_size=8).map("x{}".format)),
    )
)
def test_an_offered_rule_matches_what_it_was_offered_for_and_no_longer_one(
    tmp_path_factory: pytest.TempPathFactory, action: Action
) -> None:
    workspace = Workspace(tmp_path_factory.getbasetemp())
    policy, given_action = Policy(workspace=workspace), real(workspace, action)
    longer = shell(f"{action.command} c") if action.command else edit(f"{given_action.paths[0].display}c")
    offered = policy.rule_for(given_action)
    policy.remember(given_action, Scope.SESSION)

    assert policy.decide(given_action).behavior is (ASK if offered is None else ALLOW)
    assert policy.decide(real(workspace, longer)).behavior is ASK


@pytest.mark.requirement("F25")
def test_remembered_answer_covers_that_call_alone_and_survives(tmp_path: Path, workspace: Workspace) -> None:
    saved = tmp_path / "state" / "grants"
    policy = Policy(workspace=workspace, grants=Grants(saved))
    policy.remember(real(workspace, edit("src/a.py")), Scope.ALWAYS)
    policy.remember(shell("ls"), Scope.SESSION)
    policy.remember(shell("pwd"), Scope.ONCE)
    later = Policy(workspace=workspace, grants=Grants(saved))

    assert policy.decide(shell("ls")).behavior is ALLOW
    assert policy.decide(shell("pwd")).behavior is ASK
    assert later.decide(shell("ls")).behavior is ASK
    assert later.decide(real(workspace, edit("src/a.py"))).behavior is ALLOW
    assert later.decide(real(workspace, edit("src/b.py"))).behavior is ASK
    assert [file.stat().st_mode & 0o777 for file in saved.iterdir()] == [0o600]


@pytest.mark.requirement("F25", "F64")
def test_grants_of_two_sessions_are_all_kept(tmp_path: Path) -> None:
    one, other = Grants(tmp_path), Grants(tmp_path)
    one.add("edit_file(/a)", persist=True)
    other.add("edit_file(/b)", persist=True)
    other.add("edit_file(/a)", persist=True)

    assert (other.rules, Grants(tmp_path).rules) == (("edit_file(/a)", "edit_file(/b)"),) * 2


@pytest.mark.requirement("F25")
def test_grant_that_was_for_the_session_can_be_kept_for_always(tmp_path: Path) -> None:
    grants = Grants(tmp_path)
    grants.add("edit_file(/a)", persist=False)
    grants.add("edit_file(/a)", persist=True)

    assert Grants(tmp_path).rules == ("edit_file(/a)",)


@pytest.mark.requirement("F25")
def test_grants_that_cannot_be_saved_hold_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder should be")
    grants = Grants(tmp_path / "state" / "grants")
    grants.add("edit_file(/a)", persist=True)
    grants.add("edit_file(/b)", persist=True)

    assert grants.rules == ("edit_file(/a)", "edit_file(/b)")


@pytest.mark.requirement("F25")
def test_remembered_answer_beats_no_ask_rule(workspace: Workspace) -> None:
    grants = Grants()
    grants.add("shell(ls)", persist=False)
    policy = Policy(workspace=workspace, rules=rules(ask="shell"), grants=grants)

    assert policy.decide(shell("ls")).behavior is ASK
    assert policy.rule_for(shell("ls")) is None


@pytest.mark.parametrize("content", ["{", "[]", '{"rule": 3}', '{"rules": "edit"}', ""])
def test_grants_file_that_cannot_be_read_grants_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)

    assert Grants(tmp_path).rules == ()


@pytest.mark.requirement("S2-rules")
@pytest.mark.parametrize("text", ["(", "read(", "read()", "3", "", "read(!x)", "read) x"])
def test_broken_rule_never_widens(workspace: Workspace, text: str) -> None:
    for behavior in ("allow", "ask"):
        policy = Policy(workspace=workspace, rules=rules(**{behavior: text}))
        assert policy.decide(real(workspace, edit("a"))).source == "write-default"
    denied = Policy(workspace=workspace, rules=rules(deny=text)).decide(real(workspace, read("a")))
    assert denied.behavior is DENY


@pytest.mark.requirement("F24")
@pytest.mark.parametrize(
    "target", ["conf/settings.json", "conf/settings.local.json", "conf/hooks/check.sh", "other.json"]
)
def test_settings_behind_a_link_are_control_files_too(tmp_path: Path, target: str) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / ".agent-lsp").symlink_to("conf")
    (tmp_path / "conf" / "settings.json").symlink_to("../other.json")
    workspace = Workspace(tmp_path)
    action = Action(tool="write_file", access=Access.WRITE, paths=(workspace.resolve(target),))

    verdict = Policy(workspace=workspace, mode=PermissionMode.BYPASS).decide(action)

    assert (verdict.behavior, verdict.source) == (PermissionBehavior.ASK, "control-file")
