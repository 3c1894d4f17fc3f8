"""The hooks that come with the product."""

import json
from pathlib import Path

import pytest

from agent_lsp.errors import ConfigurationError
from agent_lsp.hooks.builtin import DEFAULT_HOOKS, install_builtin, plan_guard
from agent_lsp.hooks.contract import HookContext, HookEvent, HookResult
from agent_lsp.hooks.dangerous import danger_in
from agent_lsp.hooks.registry import HookRegistry
from agent_lsp.messages import ToolResult
from agent_lsp.workspace import Access
from tests.hooks.calls import command_tool, prepared

DANGEROUS = [
    "rm -rf /",
    "rm -fr /",
    "rm -r -f /*",
    "rm --recursive --force /",
    "rm -rf -- /",
    'rm -rf "/"',
    "rm -rf //",
    "rm -rf /.",
    "/bin/rm -rf /",
    "rm -rf ~",
    "rm -rf $HOME",
    "rm -rf ./dist /",
    "sudo rm -rf --no-preserve-root /",
    "sudo -u root rm -rf /",
    "env A=1 rm -rf /",
    "timeout 5 rm -rf /",
    "cd x && rm -rf /",
    "cd x; rm -rf /",
    "true\nrm -rf /",
    "(rm -rf /)",
    "if true; then rm -rf /; fi",
    "sh -c 'rm -rf /'",
    'bash -c "cd x && rm -rf /"',
    "eval rm -rf /",
    "rm -rf / 'unclosed",
    ":(){ :|:& };:",
    ": ( ) { : | : & } ; :",
    "bomb() { bomb | bomb & }; bomb",
    "mkfs /dev/sda1",
    "mkfs.ext4 -F /dev/sda1",
    "dd if=/dev/zero of=/dev/sda",
    "sudo dd of=/dev/nvme0n1 if=x",
    "chmod -R 777 /",
    "/bin/chmod --recursive 777 /",
    "sudo -n rm -rf /",
    "sudo --user root rm -rf /",
    "sudo -D /tmp rm -rf /",
    *[
        f"{runner} rm -rf /"
        for runner in (
            *("xargs", "setsid", "stdbuf -o0", "busybox", "exec -a x", "coproc", "find . -exec", "docker exec box"),
            *(">/dev/null", "2>&1", "</dev/null 2>>log", "A=1 B+=2", "if echo;then", "case x in x)", "echo ok|xargs"),
            *("true &", "true\\\n;", "ls # '\n", "function f {", "f() {", "time", "!", "echo $#;"),
        )
    ],
    "if false; then :; elif rm -rf /; then :; fi",
    'echo "$(rm -rf /)"',
    "echo `rm -rf /`",
    'echo "`rm -rf /`"',
    'echo "a $(echo ")"; rm -rf /) b"',
    'echo "${x:-$(rm -rf /)}"',
    "cat <(rm -rf /)",
    "echo $(rm -rf /",
    "rm -rf $(echo x) /",
    "rm -rf />log",
    "rm -rf /home/..",
    "rm -rf /**",
    "rm -rf /*/*",
    "rm -rf /./*",
    "rm -rf ~/..",
    "rm -rf $'/'",
    "rm --rec --force /",
    "r\\m -rf \\/",
    'bash -o pipefail -c "rm -rf /"',
    "bash -c 'bash -c \"rm -rf /\"'",
    'env -S "rm -rf /"',
    'env --split-string="rm -rf /"',
    "su root -c'rm -rf /'",
    "ssh host 'cd x; rm -rf /'",
    "bash <<< 'rm -rf /'",
    "trap 'rm -rf /' EXIT",
    "eval 'rm -rf' /",
    "rm -rf /\necho 'unclosed",
    "function f { f|f& }; f",
    "f() { f|f& }\nf",
]
HARMLESS = [
    "rm -rf /tmp/build",
    "rm -rf ./dist",
    "rm -r dist/*",
    "rm /",
    "echo ok",
    'echo "rm -rf /"',
    "git commit -m 'never rm -rf / again'",
    "grep -r 'rm -rf /' docs",
    "dd if=a of=b",
    "dd if=/dev/zero of=/dev/null",
    "chmod -R 777 ./dist",
    "ls /",
    "man mkfs",
    "f() { ls | cat; }; f",
    "echo 'unclosed",
    "echo rm -rf /",
    "/bin/echo rm -rf /",
    "if true; then echo rm -rf /; fi",
    "bash -c 'echo rm -rf /'",
    "printf %s rm -rf /",
    "grep -r rm -rf /",
    "git commit -m rm -rf /",
    "gh pr create --body 'never rm -rf / again'",
    "echo '$(rm -rf /)'",
    'echo "\\$(rm -rf /)"',
    "make # not rm -rf /",
    'rm -rf "$(pwd)/"',
    "rm -rf $(pwd)/",
    'rm -rf "$DIR"/ /tmp/*',
    "rm -rf /home/../tmp",
    "rm -f /",
    "docker run --rm -v /:/host -r image /",
    "chmod -r /",
    "chmod --reference=a /",
    "find . -name mkfs.ext4 -o -name x",
    "mkfs.ext4 disk.img",
    "ls -R / 2>/dev/null | wc",
    "a=(x y); f() { ls; }; f",
]


@pytest.mark.requirement("C14")
@pytest.mark.parametrize("command", DANGEROUS)
async def test_dangerous_command_is_blocked_by_hook_and_by_guard(tmp_path: Path, command: str) -> None:
    registry = HookRegistry()
    install_builtin(registry, DEFAULT_HOOKS, tmp_path)
    call = prepared(command)

    outcome = await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=call))
    guard = await registry.check_guards(call)

    assert outcome.result.blocking_error is not None
    assert outcome.actions[0].hook == "block-dangerous-bash"
    assert guard is not None
    assert guard.hook == "block-dangerous-bash"


@pytest.mark.requirement("C14")
@pytest.mark.parametrize("command", HARMLESS)
def test_harmless_command_is_no_danger(command: str) -> None:
    assert danger_in(command) is None


@pytest.mark.requirement("C14", "C17")
async def test_danger_is_seen_in_any_tool_that_runs_commands(tmp_path: Path) -> None:
    registry = HookRegistry()
    install_builtin(registry, DEFAULT_HOOKS, tmp_path)

    assert await registry.check_guards(prepared("rm -rf /", command_tool(name="new_tool"))) is not None
    assert await registry.check_guards(prepared("rm -rf /", command_tool(Access.READ, "search"))) is None


@pytest.mark.requirement("C15")
@pytest.mark.parametrize(
    ("command", "becomes"),
    [("ls", "ls -la"), (" ls ", "ls -la"), *[(same, None) for same in ("ls src", "ls -l", "lsblk", "ls && x")]],
)
async def test_ls_add_la_rewrites_a_bare_ls_alone(tmp_path: Path, command: str, becomes: str | None) -> None:
    registry = HookRegistry()
    install_builtin(registry, ["ls-add-la"], tmp_path)

    outcome = await registry.run(HookContext(event=HookEvent.PRE_TOOL_USE, prepared=prepared(command)))

    rewritten = outcome.result.updated_input
    assert (rewritten and rewritten.arguments["command"]) == becomes


@pytest.mark.requirement("C16")
async def test_audit_log_writes_one_line_for_each_call(tmp_path: Path) -> None:
    registry = HookRegistry()
    install_builtin(registry, ["audit-log"], tmp_path)
    for command, result in [("a\nb", ToolResult(content="")), ("c", ToolResult.error("x", "y"))]:
        await registry.run(HookContext(event=HookEvent.POST_TOOL_USE, prepared=prepared(command), result=result))

    lines = (tmp_path / "log" / "hooks.log").read_text().splitlines()

    assert [json.loads(line) for line in lines] == [
        {"tool": "shell", "arguments": {"command": "a\nb"}, "is_error": False},
        {"tool": "shell", "arguments": {"command": "c"}, "is_error": True},
    ]
    assert not registry.may_change_results


@pytest.mark.requirement("C16")
async def test_audit_log_that_cannot_be_written_fails_no_call(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the folder should be")
    registry = HookRegistry()
    install_builtin(registry, ["audit-log"], tmp_path)
    context = HookContext(event=HookEvent.POST_TOOL_USE, prepared=prepared(), result=ToolResult(content=""))

    assert (await registry.run(context)).result == HookResult()


@pytest.mark.requirement("C20")
@pytest.mark.parametrize("access", list(Access))
def test_plan_guard_lets_reads_pass_alone(access: Access) -> None:
    assert (plan_guard(prepared(tool=command_tool(access))) is None) is (access in (Access.READ, Access.INTERNAL))


def test_unknown_builtin_hook_is_named_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no built-in hook 'x'; known are block-dangerous-bash, ls-add-la"):
        install_builtin(HookRegistry(), ["x"], tmp_path)
