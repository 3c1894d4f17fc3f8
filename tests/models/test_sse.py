"""Server-sent events out of bytes."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_lsp.models.sse import EventDecoder


def decode(*pieces: bytes) -> list[str]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + list(decoder.finish())


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", ["a", "b"], id="line feeds"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"], id="carriage returns with line feeds"),
        pytest.param(b"data: a\r\rdata: b\r\r", ["a", "b"], id="carriage returns"),
        pytest.param(b"data:a\n\ndata:  b\n\n", ["a", " b"], id="one blank is dropped"),
        pytest.param(b": ping\n\ndata: a\n: ping\n\n:\n\n", ["a"], id="comments"),
        pytest.param(b"event: x\nid: 1\nretry: 5\ndata: a\n\nevent: y\n\n", ["a"], id="other fields"),
        pytest.param(b"data: a\ndata: b\n\n", ["a\nb"], id="several data lines"),
        pytest.param(b"\n\n\ndata: a\n\n\n\ndata: b\n\n", ["a", "b"], id="more blank lines than needed"),
        pytest.param(b"data: a\n\ndata: b\n", ["a", "b"], id="last blank line missing"),
        pytest.param(b"data: a\n\ndata: b", ["a", "b"], id="last line end missing"),
        pytest.param(b"data: \xff\n\n", ["\N{REPLACEMENT CHARACTER}"], id="invalid bytes"),
        pytest.param(b"data: \xe2\x80\xa8\x0b\n\n", ["\N{LINE SEPARATOR}\x0b"], id="other separators stay"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_decoder_reads_the_data_of_each_event(stream: bytes, events: list[str]) -> None:
    assert decode(stream) == events
    assert decode(*(bytes([byte]) for byte in stream)) == events


@pytest.mark.requirement("F54")
@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(min_value=0)),
)
def test_decoder_does_not_see_how_bytes_are_split(events: list[str], line_end: str, cuts: list[int]) -> None:
    stream = "".join(f": note{line_end}data: {event}{line_end}{line_end}" for event in events).encode()
    marks = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    assert decode(*(stream[start:end] for start, end in pairwise(marks))) == events
