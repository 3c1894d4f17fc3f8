"""Behaviours combine by max, digests bind, and what is shown cannot mislead."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_lsp.approvals import FileChange, LineMatcher, PermissionBehavior, content_digest, digest, visible
from agent_lsp.workspace import ResolvedPath

_PATH = ResolvedPath(path=Path("a.txt"), display="a.txt", inside=True)


@pytest.mark.requirement("A29")
def test_permission_behaviors_are_ordered() -> None:
    order = ["passthrough", "allow", "ask", "deny"]

    assert [str(behavior) for behavior in sorted(PermissionBehavior)] == order
    for pair in itertools.permutations(PermissionBehavior, 2):
        assert str(max(pair)) == max(map(str, pair), key=order.index)


@pytest.mark.requirement("F27")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 漢字 🙂\n\tok", "plain ünïcode 漢字 🙂\n\tok"),
        ("rm\u202egpj.exe", "rm\\u{202e}gpj.exe"),
        ("zero\u200bwidth", "zero\\u{200b}width"),
        ("\x1b[31mred\r", "\\u{1b}[31mred\\u{d}"),
        (f"ls{' ' * 80}; rm", "ls⟨80 blanks⟩; rm"),
    ],
)
def test_visible_shows_what_could_mislead(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_diff_shows_one_changed_line_with_its_names() -> None:
    change = FileChange(path=_PATH, before="a\nb\n", after="a\nc\n", before_digest=content_digest(b"a\nb\n"))

    assert change.diff() == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"


def test_diff_says_when_the_final_newline_goes() -> None:
    change = FileChange(path=_PATH, before="a\n", after="a", before_digest="")

    assert change.diff().splitlines()[-2:] == ["+a", "\\ No newline at end of file"]


def test_diff_of_a_new_file_starts_from_nothing() -> None:
    change = FileChange(path=_PATH, before=None, after="a\n", before_digest=content_digest(None))

    assert change.diff().splitlines()[:2] == ["--- /dev/null", "+++ b/a.txt"]


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("a\r\n", "a\rb\r\n", "@@ -1 +1,2 @@\n-a\\u{d}\n+a\\u{d}\n+b\\u{d}\n"),
        ("a\r\n", "a\n", "@@ -1 +1 @@\n-a\\u{d}\n+a\n"),
        ("a\n", "a\r\n", "@@ -1 +1 @@\n-a\n+a\\u{d}\n"),
        ("a\r\nb\n", "a\r\nc\n", "@@ -1,2 +1,2 @@\n a\\u{d}\n-b\n+c\n"),
        (
            "a\r\nb",
            "a\r\nc\rd",
            "@@ -1,2 +1,3 @@\n a\\u{d}\n-b\n\\ No newline at end of file\n+c\\u{d}\n+d\n\\ No newline at end of file\n",
        ),
        ("a", "b\r\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"),
    ],
)
@pytest.mark.requirement("F27")
def test_diff_marks_line_ends_only_where_they_differ(before: str, after: str, shown: str) -> None:
    change = FileChange(path=_PATH, before=before, after=after, before_digest="")

    assert change.diff() == f"--- a/a.txt\n+++ b/a.txt\n{shown}"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (None, "", "--- /dev/null\n+++ b/a.txt\n(empty file)\n"),
        ("", None, "--- a/a.txt\n+++ /dev/null\n(empty file)\n"),
        ("", "", ""),
        ("a\n", "", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +0,0 @@\n-a\n"),
    ],
)
def test_diff_says_that_a_file_is_empty(before: str | None, after: str | None, shown: str) -> None:
    assert FileChange(path=_PATH, before=before, after=after, before_digest="").diff() == shown


@pytest.mark.requirement("A40")
def test_digest_binds_arguments_and_shown_change() -> None:
    change = FileChange(path=_PATH, before="a", after="b", before_digest="1")
    other_content = FileChange(path=_PATH, before="a", after="b", before_digest="2")
    other_result = FileChange(path=_PATH, before="a", after="c", before_digest="1")
    digests = {digest({"x": 1}, shown) for shown in (None, change, other_content, other_result)}

    assert len({*digests, digest({"x": 2}, None)}) == 5
    assert digest({"x": 1, "y": 2}, change) == digest({"y": 2, "x": 1}, change)


_TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\r", "e"]), max_size=40).map("".join)


@pytest.mark.requirement("S4-approvals")
@given(before=_TEXTS, after=_TEXTS, data=st.data())
def test_parts_of_a_change_add_up_to_it(before: str, after: str, data: st.DataObject) -> None:
    change = FileChange(path=_PATH, before=before, after=after, before_digest="")
    every = range(len(change.hunks()))
    some = data.draw(st.sets(st.sampled_from(every))) if every else set()

    part = change.only(some)
    rest = FileChange(path=_PATH, before=part.after, after=after, before_digest="")

    assert change.only(every).after == after
    assert change.only(()).after == before
    assert (part.after == after) is (some == set(every))
    assert (part.after == before) is (not some)
    assert rest.only(range(len(rest.hunks()))).after == after


@pytest.mark.requirement("S4-approvals")
def test_part_of_a_change_knows_its_lines() -> None:
    old = "".join(f"{number}\n" for number in range(20))
    change = FileChange(path=_PATH, before=old, after=old.replace("3\n4\n", "x\n", 1) + "end", before_digest="")

    assert [hunk.replaced for hunk in change.hunks()] == [range(3, 5), range(20, 20)]
    assert [(hunk.before, hunk.after) for hunk in change.hunks()] == [
        (range(8), range(7)),
        (range(17, 20), range(16, 20)),
    ]


@pytest.mark.requirement("S4-approvals")
@pytest.mark.parametrize("position", [0, 1, 400, 798, 799])
def test_part_is_small_among_many_equal_lines(position: int) -> None:
    old = ["}\n", "\n"] * 400
    new = [*old[:position], "x\n", *old[position + 1 :]]

    change = FileChange(path=_PATH, before="".join(old), after="".join(new), before_digest="")

    assert [hunk.replaced for hunk in change.hunks()] == [range(position, position + 1)]


@given(old=st.lists(st.sampled_from("abc")), new=st.lists(st.sampled_from("abc")))
def test_steps_lead_from_the_old_lines_to_the_new_ones(old: list[str], new: list[str]) -> None:
    steps = LineMatcher(old, new).get_opcodes()

    made = [line for kind, a, b, c, d in steps for line in (old[a:b] if kind == "equal" else new[c:d])]
    assert made == new
    assert [line for _kind, a, b, _c, _d in steps for line in old[a:b]] == old
