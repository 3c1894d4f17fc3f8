"""Lenses above tests of several languages, and only for clients that opt in."""

from pathlib import Path

import pytest
from lsprotocol import types

from agent_lsp.lsp.code_lens import code_lenses
from agent_lsp.lsp.setup import make_server
from tests.lsp.harness import serving

URI = "file:///a"


@pytest.mark.requirement("S4-code-lens")
@pytest.mark.parametrize(
    ("text", "lines", "named"),
    [
        ("import x\n\ndef test_a():\n    pass\n\nclass T:\n    async def test_b(self): ...\n", [2, 6], "'test_a'"),
        ("def helper_test():\n    test_a()\n", [], ""),
        ("it('adds', () => {})\ntest.only(\"it's\", f)\nsubmit('x')\n", [0, 1], "'adds'"),
        ("func TestSum(t *testing.T) {}\n", [0], "'TestSum'"),
        ("#[test]\nfn sums() {}\n#[tokio::test]\nasync fn b() {}\n", [0, 2], "this test"),
        ("  @Test\n  void sums() {}\n", [0], "this test"),
    ],
)
def test_tests_of_several_languages_have_a_lens(text: str, lines: list[int], named: str) -> None:
    lenses = code_lenses(URI, text, ())

    assert [lens.range.start.line for lens in lenses] == lines
    for lens in lenses[:1]:
        assert lens.command is not None
        assert (lens.command.title, lens.command.command) == ("Ask the agent", "agent.run")
        assert named in str(lens.command.arguments)


@pytest.mark.requirement("S4-code-lens")
def test_failing_line_has_a_lens_in_the_order_of_lines() -> None:
    place = types.Range(types.Position(0, 4), types.Position(0, 9))

    lenses = code_lenses(URI, "x = y\ndef test_a(): ...\n", [types.Diagnostic(range=place, message="y is undefined")])

    assert [lens.range.start.line for lens in lenses] == [0, 1]
    assert "y is undefined" in str(lenses[0].command)


@pytest.mark.requirement("S4-code-lens")
@pytest.mark.parametrize("wanted", [True, False])
async def test_lenses_are_offered_to_those_who_ask_for_them(tmp_path: Path, wanted: bool) -> None:
    async with serving(make_server()) as client:
        answer = await client.initialize({}, rootUri=tmp_path.as_uri(), initializationOptions={"codeLens": wanted})

    assert ("codeLensProvider" in answer["capabilities"]) is wanted
