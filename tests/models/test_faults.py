"""What errors mean, and how long to wait."""

from datetime import UTC, datetime

import pytest

from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.models.failures import Failure, retry_after
from agent_lsp.models.faults import TransientFault, judge, one_line, stated_limit, wait_after
from agent_lsp.models.settings import Backoff, OpenAIChatSettings

SETTINGS = OpenAIChatSettings(name="m", base_url="https://user:pass@host:8/v1?token=t", api_key="key-that-is-secret")
SERVER = "The model server https://host:8/v1"


@pytest.mark.requirement("F53")
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens."),
        (400, "'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens"),
        (400, "Your input exceeds the context window of this model"),
        (400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192"),
        (400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        (400, "Requested token count exceeds the model's maximum context length of 8192 tokens"),
        (500, "the request exceeds the available context size. try increasing the context size"),
        (400, "The number of tokens to keep from the initial prompt is greater than the context length"),
        (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Input is too long for requested model."),
        (400, "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens"),
        (400, "Invalid request: Your request exceeded model token limit: 8192"),
        (400, "Please reduce the length of the messages or completion."),
        (400, "context_length_exceeded"),
        (400, "Context size has been exceeded."),
        (413, "Payload Too Large"),
        (429, "Request too large for m on tokens per min (TPM): Limit 10000, Requested 12000."),
        (None, "context length exceeded"),
    ],
)
def test_judge_recognises_an_overflow_by_its_text(status: int | None, text: str) -> None:
    assert type(judge(Failure(text=text, status=status), SETTINGS)) is ContextOverflow


@pytest.mark.requirement("F53")
@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("'max_tokens' is too large: 2000. This model's maximum context length is 4096 tokens", 4096),
        ("maximum context length is 8,192 tokens. However, your messages resulted in 8545 tokens.", 8192),
        ("The input (9000 tokens) is longer than the model's context length (8192 tokens).", 8192),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 4096),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192", 8192),
        ("Invalid request: Your request exceeded model token limit: 8192", 8192),
        ("Your input exceeds the context window of this model", None),
    ],
)
def test_the_size_of_the_context_is_read_from_a_refusal(text: str, limit: int | None) -> None:
    assert stated_limit(text) == limit


@pytest.mark.requirement("F53")
@pytest.mark.parametrize(
    "code", ["context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"]
)
def test_judge_recognises_an_overflow_by_its_code(code: str) -> None:
    assert type(judge(Failure(text="no", status=400, codes=frozenset({code})), SETTINGS)) is ContextOverflow


@pytest.mark.requirement("F53", "F54")
@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (429, "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000.", TransientFault),
        (429, "Too many tokens, please wait before trying again.", TransientFault),
        (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens", ModelError),
        (400, "Invalid value for 'context': expected a string", ModelError),
        (503, "The model is overloaded", TransientFault),
    ],
)
def test_judge_takes_no_other_error_for_an_overflow(status: int, text: str, kind: type[Exception]) -> None:
    assert type(judge(Failure(text=text, status=status), SETTINGS)) is kind


@pytest.mark.requirement("F54")
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_judge_lets_a_passing_status_pass(status: int) -> None:
    fault = judge(Failure(text="busy", status=status, retry_after=2.0), SETTINGS)
    assert isinstance(fault, TransientFault)
    assert (fault.reason, fault.retry_after) == (f"HTTP {status}: busy", 2.0)


@pytest.mark.requirement("F56", "F76")
@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            Failure(text="Incorrect API key provided:\n key-that-is-secret.", status=401),
            (
                f"{SERVER} refused the API key (HTTP 401: Incorrect API key provided: [redacted]). "
                "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"
            ),
        ),
        (
            Failure(text="no", status=403),
            (
                f"{SERVER} refused the API key (HTTP 403: no). "
                "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"
            ),
        ),
        (
            Failure(text="The model `m` does not exist", status=404, codes=frozenset({"model_not_found"})),
            f"{SERVER} does not know the model m (HTTP 404: The model `m` does not exist). Change model.name",
        ),
        (
            Failure(text='model "m" not found, try pulling it first', status=404),
            (
                f'{SERVER} does not know the model m (HTTP 404: model "m" not found, try pulling it first). '
                "Change model.name"
            ),
        ),
        (
            Failure(text="no access", status=403, codes=frozenset({"model_not_found"})),
            f"{SERVER} does not know the model m (HTTP 403: no access). Change model.name",
        ),
        (
            Failure(text="'max_tokens' is not supported with this model", status=400),
            f"{SERVER} refused the request (HTTP 400: 'max_tokens' is not supported with this model)",
        ),
        (
            Failure(text="Invalid model: m", status=400),
            f"{SERVER} does not know the model m (HTTP 400: Invalid model: m). Change model.name",
        ),
        (
            Failure(text="Not Found", status=404),
            f"{SERVER} has no chat completions there (HTTP 404: Not Found). Check model.base_url and model.name",
        ),
        (
            Failure(text="You exceeded your quota", status=429, codes=frozenset({"insufficient_quota"})),
            (
                "The account of the API key has no credit left (HTTP 429: You exceeded your quota). "
                "Top it up, or set another key"
            ),
        ),
        (
            Failure(text="Insufficient Balance", status=402),
            (
                "The account of the API key has no credit left (HTTP 402: Insufficient Balance). "
                "Top it up, or set another key"
            ),
        ),
        (Failure(text="no", status=422), f"{SERVER} refused the request (HTTP 422: no)"),
    ],
)
def test_judge_says_in_one_line_what_to_change(failure: Failure, message: str) -> None:
    error = judge(failure, SETTINGS)
    assert (type(error), str(error)) == (ModelError, message)


@pytest.mark.requirement("F56")
def test_judge_asks_for_a_key_where_none_is_set() -> None:
    error = judge(Failure(text="no", status=401), OpenAIChatSettings(name="m", base_url="http://host/v1"))
    assert str(error).startswith("The model server http://host/v1 wants an API key (HTTP 401: no)")


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 -0000"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 09:28:30 +0200"}, 30.0),
        ({"retry-after": "Tue, 20 Oct 2026 07:28:30 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:30 GMT"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after_reads_seconds_milliseconds_and_dates(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, datetime(2026, 10, 21, 7, 28, tzinfo=UTC)) == seconds


@pytest.mark.requirement("F54")
def test_wait_grows_to_the_cap_and_stays_between_half_and_whole() -> None:
    settings = OpenAIChatSettings(name="m", backoff=Backoff(base=1.0, cap=5.0, retries=6))
    for attempt, most in enumerate([1.0, 2.0, 4.0, 5.0, 5.0, 5.0], start=1):
        wait = wait_after(TransientFault("busy"), attempt, settings)
        assert (wait.attempt, wait.reason) == (attempt, "busy")
        assert most / 2 <= wait.delay <= most


@pytest.mark.requirement("F54")
@pytest.mark.parametrize(
    ("wish", "least", "most"), [(30.0, 30.0, 30.0), (60.0, 60.0, 60.0), (0.0, 2.0, 4.0), (0.1, 2.0, 4.0)]
)
def test_wait_is_as_long_as_the_server_asks_and_not_below_the_own_backoff(
    wish: float, least: float, most: float
) -> None:
    settings = OpenAIChatSettings(name="m", backoff=Backoff(base=4.0))
    assert least <= wait_after(TransientFault("busy", retry_after=wish), 1, settings).delay <= most


@pytest.mark.requirement("F54", "F56")
@pytest.mark.parametrize(
    ("fault", "attempt", "message"),
    [
        (TransientFault("HTTP 503: busy"), 6, f"{SERVER} failed 6 times, last: HTTP 503: busy. Try again later"),
        (
            TransientFault("no answer: refused", unreachable=True),
            3,
            f"{SERVER} failed 3 times, last: no answer: refused. Check that it runs, and model.base_url",
        ),
        (
            TransientFault("HTTP 429: slow", retry_after=3600.0),
            1,
            (
                f"{SERVER} asks to wait 3600 s, longer than the 60 s that a request waits (HTTP 429: slow). "
                "Try again later"
            ),
        ),
    ],
)
def test_wait_ends_where_waiting_has_no_point(fault: TransientFault, attempt: int, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        wait_after(fault, attempt, SETTINGS)
    assert str(caught.value) == message


@pytest.mark.requirement("F76")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n  b\r\n", "a b"),
        ("bad key-that-is-secret!", "bad [redacted]!"),
        ("bad sk-proj-ab12**********yz.", "bad [redacted]"),
        ("got Authorization: Bearer abc.def", "got Authorization: [redacted]"),
        ("key gsk_abcdefgh1234 and AIzaSyA-123456", "key [redacted] and [redacted]"),
        ("the task-force and its risk-assessment", "the task-force and its risk-assessment"),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_one_line_is_bounded_and_holds_no_key(text: str, line: str) -> None:
    assert one_line(text, SETTINGS) == line


@pytest.mark.requirement("F76")
def test_settings_do_not_show_the_key() -> None:
    assert "key-that-is-secret" not in repr(SETTINGS)
