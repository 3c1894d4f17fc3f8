"""What the parser says a command line runs, compared with what bash itself runs."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_lsp.permissions.command_patterns import command_pattern
from agent_lsp.permissions.shell_syntax import CommandLine, parse
from agent_lsp.permissions.shell_words import GLOB, HOLES, MANY, ONE


def run_by(text: str) -> list[str]:
    """The commands that must be allowed, with dots for what only the shell knows."""
    return [" ".join(HOLES.sub("…", word) for word in each.words) for each in parse(text).commands if each.needs_allow]


@pytest.mark.requirement("F20")
@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("git status", ["git status"]),
        ("  git   log --oneline ", ["git log --oneline"]),
        ("grep 'a b' \"c d\"", ["grep a b c d"]),
        ("a; b && c || d | e & f\ng", ["a", "b", "c", "d", "e", "f", "g"]),
        ("(a; { b; })", ["a", "b"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("for x in $(a); do b; done; while c; do d; done; until e; do f; done", ["a", "b", "c", "d", "e", "f"]),
        ("case $(a) in $(b)) c;; esac", ["a", "b", "c"]),
        ('a $(b) `c` <(d) "$(e)" ${x:-$(f)}', ["b", "c", "d", "e", "f", "a … … … … …"]),
        ("x=$(a); y=(b $(c))", ["a", "c"]),
        ("a <<E && b\n$(c)\nE", ["b", "c", "a"]),
        ("a <<'E'\n$(c)\nE", ["a"]),
        ('a <<< "$(b)"', ["b", "a"]),
        ("[[ -n $(a) ]] && [ -f b ] && c", ["a", "c"]),
        ("! a", ["a"]),
        ("r\\m 'x'\"y\"z", ["rm xyz"]),
        ("a \\\n  b", ["a b"]),
        ("a # b", ["a"]),
        ("rm > out -rf x", ["rm -rf x"]),
        ("env a", ["a"]),
        ("env -i /usr/bin/nohup nice -n 5 timeout -s KILL 5 stdbuf -o0 time -p a b", ["a b"]),
        ("command a; exec b; builtin c", ["a", "b", "c"]),
        ("command -v a", ["command -v a"]),
        ("sudo -u me a b", ["sudo -u me a b", "a b"]),
        ("xargs -n 1 a b", ["xargs -n 1 a b", "a b …"]),
        ("find . -exec a {} \\; -execdir b {} +", ["find . -exec a {} ; -execdir b {} +", "a …", "b …"]),
        ("bash -lc 'a; sh -c \"b | c\"'", ["a", "b", "c"]),
        ("eval 'a; b'; trap 'c' EXIT", ["a", "b", "c"]),
        ("watch -n 2 'a | b'", ["a", "b"]),
        ("bash script.sh x", ["bash script.sh x"]),
        ("ls env; docker ps; git run", ["ls env", "docker ps", "git run"]),
        ("cd src; echo hi; true", []),
        ("cd ..; cd /; cd", ["cd ..", "cd /", "cd"]),
    ],
)
def test_parser_finds_every_command(text: str, commands: list[str]) -> None:
    assert run_by(text) == commands
    assert parse(text).unclear == ()


@pytest.mark.requirement("F20", "F21")
@pytest.mark.parametrize(
    "text",
    [
        *("$X a", "$(a)", "`a` b", '"$X"', "/bin/r[m] a", "{a,b}", "~/a", "a{1..3}", "$'\\x72m' x"),
        *("eval $X", "bash -c $X", 'sh -c "$X"', "bash -s", "a | sh", "bash -i", "trap $X EXIT"),
        *(". a", "source a", "ssh host a", "parallel a", "su -c a", "docker exec box a", "podman run image"),
        *(
            "./flock f a",
            "/lib64/ld-linux-x86-64.so.2 a",
            "coproc a",
            "xargs -Z a",
            "env -S 'a b'",
            "timeout --odd 5 a",
        ),
        *("PATH=. a", "LD_PRELOAD=x a", "GIT_PAGER=x a", "FOO=1 a", "env FOO=1 a", "export PATH=x", "PATH=x", "IFS=x"),
        *("declare -x A=1", "unset PATH", "read PATH", "read x PATH", "printf -v PATH x", "for PATH in a; do b; done"),
        *("alias a=b", "f() { a; }; f", "function f { a; }", "hash -p /x a", "enable -f x y", "set -o x", "shopt -s x"),
        *("git -c core.pager=x log", "git --exec-path=x log", "git -C d -c a=b log", "mapfile -C a x", "complete -C a"),
        *("(( x ))", "echo $(( x ))", "[[ $x -eq 1 ]]", "[[ -v $x ]]", "test -v 'a[$(b)]'", "[ $x ]", "let x=1"),
        *("echo ${x@P}", "echo ${!x}", "echo ${x:=1}", "echo ${x:y}", "echo ${a[$(b)]}", "a[$(b)]=1"),
        *("a > $X", "a > *.c", 'a &> "$X"', "cd src && a > b", "a 'b", "a )", "a &&& b", "echo `a \\`b\\``"),
        *("a <<E <<F\nE\nF", 'a <<E"F"\nEF', "a\x00b", "a\u2028b", "a\x1bb", "for ((i=0;i<3;i++)); do a; done"),
        *("a <> b", "x" * 20_001, "bash -c " * 10 + "a"),
    ],
)
def test_what_is_not_certain_is_unclear(text: str) -> None:
    assert parse(text).unclear != ()


@pytest.mark.requirement("F22")
@pytest.mark.parametrize(
    ("text", "writes", "reads"),
    [
        ("a > b", ["b"], []),
        ("a >> 'b c' 2> d", ["b c", "d"], []),
        ("a &> b; c >| d; g >& h", ["b", "d", "h"], []),
        ("a 2>&1 >&- < b", [], ["b"]),
        ("{ a; } > b", ["b"], []),
        ("while a; do b; done < c > d", ["d"], ["c"]),
        ("> b", ["b"], []),
        ("a $(b > c) <(d > e)", ["c", "e"], []),
        ("bash -c 'a > b'", ["b"], []),
    ],
)
def test_redirections_are_writes_and_reads(text: str, writes: list[str], reads: list[str]) -> None:
    line = parse(text)

    assert (list(line.writes), list(line.reads), line.unclear) == (writes, reads, ())


# --- bash as the judge: programs that write down how they were called

_RECORDER = """#!/bin/sh
printf '%s\\0' "$(basename "$0")" "$@" > "$RECORD/$$"
"""
PROGRAMS = ("aa", "bb", "xx")


@pytest.fixture(scope="module")
def bin_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    for name in PROGRAMS:
        (folder / name).write_text(_RECORDER)
        (folder / name).chmod(0o755)
    return folder


def ran_by_bash(text: str, bin_directory: Path, folder: Path) -> tuple[list[tuple[str, ...]], set[str]]:
    """The recorded calls of the programs, and the names of new files in the folder where bash ran."""
    work = Path(tempfile.mkdtemp(dir=folder))
    record = Path(tempfile.mkdtemp(dir=folder))
    environment = {"PATH": f"{bin_directory}:/usr/bin:/bin", "RECORD": str(record), "X": "xx", "HOME": str(work)}
    subprocess.run(
        ["bash", "-c", text], env=environment, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
    )
    calls = [tuple(file.read_bytes().decode().split("\0")[:-1]) for file in record.iterdir()]
    return calls, {each.name for each in work.iterdir()}


def stands_for(words: tuple[str, ...], call: tuple[str, ...]) -> bool:
    """Whether words with marks may come to what was called."""
    pattern = "\0".join(words)
    patterns = {ONE: "[^\0]*", MANY: ".*", GLOB: ".*"}
    text = "".join(patterns.get(char, re.escape(char)) for char in pattern)
    text = text.replace("\0.*", "(\0.*)?")
    return re.fullmatch(text, "\0".join(call), re.DOTALL) is not None


def check_against_bash(text: str, bin_directory: Path, folder: Path) -> None:
    line: CommandLine = parse(text)
    if line.unclear:
        return
    calls, made = ran_by_bash(text, bin_directory, folder)
    known = [each.words for each in line.commands]

    unknown = [call for call in calls if not any(stands_for(words, call) for words in known)]
    assert unknown == [], (text, known)
    assert made <= {os.path.normpath(path) for path in line.writes}, text


_word = st.sampled_from(
    [
        *(
            "a",
            "'b c'",
            '"d e"',
            "-rf",
            "\\;",
            "x\\ y",
            "$X",
            '"$X"',
            "*",
            "{p,q}",
            "~",
            "''",
            "a'b'\"c\"",
            "$(bb)",
            "`bb`",
        ),
        *('"$(xx q)"', "<(bb)", "${X:-$(xx)}", "$((1+2))", "\\$X", "'$(xx)'", "#x", "a#b", "!", "=", "a=b", "--", "-c"),
        *("$'a'", "$'\\n'", '"a\\"b"', '"\\$(xx)"', "1", "{", "}", "[", "]", "a\\\nb", '"a\nb"', "é", "$", '"$"', "if"),
    ]
)
_program = st.sampled_from(
    [
        *PROGRAMS,
        *("x\\x", "'xx'", '"x"x', "env xx", "command xx", "nohup xx", "timeout 5 xx", "nice xx", "time xx", "exec xx"),
        *(
            "sh -c 'xx x'",
            'bash -c "xx y"',
            "eval xx",
            "xargs xx",
            "X=1 xx",
            "x=1 xx",
            "CI=1 xx",
            "! xx",
            "echo",
            "true",
        ),
        *("stdbuf -o0 xx", "setsid xx", "find . -maxdepth 0 -exec xx", "trap 'xx z' EXIT;"),
    ]
)
_redirect = st.sampled_from(
    ["", "", "", " > out", " 2>&1", " >> 'o p'", " < /dev/null", " &> all", " > out more", " <<< w"]
)
_simple = st.builds(
    lambda program, words, redirect: f"{program} {' '.join(words)}{redirect}",
    _program,
    st.lists(_word, max_size=4),
    _redirect,
)


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}; {}".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{} || {}".format, inner, inner),
        st.builds("{} | {}".format, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
        st.builds("({})".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds("if {}; then {}; else {}; fi".format, inner, inner, inner),
        st.builds("for v in 1 2; do {}; done".format, inner),
        st.builds("case a in a) {};; *) {};; esac".format, inner, inner),
        st.builds("aa $({})".format, inner),
        st.builds('aa "$({})" z'.format, inner),
        st.builds("aa <<E\n$({})\nE\n".format, inner),
        st.builds("aa <<'E'\n{}\nE\n".format, inner),
        st.builds("aa <<E && {}\ntext\nE\n".format, inner),
        st.builds("{} & wait".format, inner),
        st.builds("v=$({}); bb".format, inner),
        st.builds("f() {{ {}; }}; f".format, inner),
        st.builds("{} # {}".format, inner, inner),
    )


@pytest.mark.requirement("F20", "F22")
@settings(deadline=None, max_examples=int(os.environ.get("SHELL_EXAMPLES", "150")))
@given(text=st.recursive(_simple, _compound, max_leaves=4))
@example(text="xx > out -rf x")
@example(text="aa <<E\n`xx x`\nE\n")
def test_bash_runs_nothing_that_the_parser_did_not_find(
    text: str, bin_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_against_bash(text, bin_directory, tmp_path_factory.getbasetemp())


@pytest.mark.requirement("F20")
@settings(deadline=None, max_examples=int(os.environ.get("SHELL_EXAMPLES", "150")))
@given(text=st.text(alphabet="ab '\"\\;|&$(){}<>*?~#=!`\n\t-[]", min_size=1, max_size=14))
def test_bash_runs_nothing_else_for_any_characters(
    text: str, bin_directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check_against_bash(f"xx {text}", bin_directory, tmp_path_factory.getbasetemp())


@pytest.mark.requirement("F20")
@given(
    pattern=st.lists(st.sampled_from(["rm", "*", "-rf", "a*", "*b", "x"]), min_size=1, max_size=4),
    words=st.lists(
        st.sampled_from(["rm", "-rf", "a", "ab", "x", ONE, MANY, f"a{ONE}", f"{MANY}b"]), min_size=1, max_size=4
    ),
    values=st.lists(st.sampled_from(["rm", "-rf", "a", "b", "", "x"]), min_size=4, max_size=4),
)
def test_a_rule_covers_what_marks_come_to_and_may_cover_what_it_could(
    pattern: list[str], words: list[str], values: list[str]
) -> None:
    rule = command_pattern(" ".join(pattern))
    filled = []
    for word, value in zip(words, values, strict=False):
        text = HOLES.sub(value, word)
        if text or not HOLES.fullmatch(word) or word == ONE:
            filled.append(text)
    if not filled or not filled[0] or not words[0]:
        return

    if rule.covers(tuple(words)) and not HOLES.search(words[0]):
        assert rule.covers(tuple(filled)), json.dumps(filled)
    if rule.covers(tuple(filled)):
        assert rule.may_cover(tuple(words)) or HOLES.search(words[0])
