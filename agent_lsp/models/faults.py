"""What can go wrong between us and a model server, and what follows: wait, compact, or tell the human what to set.

Invariant: texts that leave here are one line and carry no key (F56, F76).
"""

import re
from http import HTTPStatus
from random import SystemRandom
from urllib.parse import urlsplit

from agent_lsp.errors import ContextOverflow, ModelError
from agent_lsp.models.base import RetryWait
from agent_lsp.models.failures import Failure
from agent_lsp.models.quirks import Quirk, refused_for
from agent_lsp.models.settings import OPENAI_BASE_URL, Backoff, OpenAIChatSettings

_RANDOM = SystemRandom()
_LONGEST_TEXT = 300
_SET_KEY = "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"


class TransientFault(Exception):
    """The same request may succeed a little later; ``retry_after`` is the server's own wish in seconds."""

    def __init__(self, reason: str, *, retry_after: float | None = None, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.unreachable = unreachable


class QuirkFound(Exception):
    """The server wants the request otherwise; once that quirk is in force, it is worth sending again at once (F55)."""

    def __init__(self, quirk: Quirk, said: str) -> None:
        super().__init__(said)
        self.quirk = quirk
        self.said = said


_SPENT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_PASSING = re.compile(
    r"server.?error|internal|overload|rate.?limit|too many|timeout|timed out|unavailable|capacity|try again"
)
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded"}
# How the well-known servers put it: OpenAI and what follows its wording, vLLM, SGLang, llama.cpp, LM Studio, TGI,
# Anthropic, Bedrock, Gemini, xAI, Moonshot, and the gateways before them.
_OVERFLOW_TEXT = re.compile(
    r"(maximum|max|model's) (context|model|prompt|input) (length|size|window)"
    r"|context[ _](length|window|size)[ _]((is|has been) )?(exceed|full|limit)"
    r"|(exceed|overflow)\w*\W.{0,60}context"
    r"|(longer|greater|larger) than .{0,30}context"
    r"|(prompt|input|request) is too (long|large)"
    r"|request too large"
    r"|token count .{0,40}exceeds"
    r"|exceed\w* .{0,20}token limit"
    r"|reduce the length of (the|your) (messages|prompt|input)"
    r"|max_new_tokens.{0,10} must be <=",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model.{0,60}(not found|not exist)|(unknown|invalid|no such) model|not a valid model", re.IGNORECASE
)
_UNKNOWN_MODEL_CODES = {"model_not_found", "deploymentnotfound"}
_BAD_KEY = re.compile(r"api.?key (is )?(not valid|invalid)|(invalid|incorrect) api.?key", re.IGNORECASE)


# The sizes in what those servers say; the number of the request's own tokens stands elsewhere.
_LIMIT = re.compile(
    r"(?:(?:context|prompt|model) (?:length|size|window)|tokens allowed|token limit|must be <=)"
    r"(?: (?:is|of|only|at most))*[ :(]*(\d[\d,]*)|(\d+) maximum",
    re.IGNORECASE,
)


def judge(failure: Failure, settings: OpenAIChatSettings) -> TransientFault | QuirkFound | ModelError:
    """What follows from a failure: an exception to raise."""
    said = one_line(str(failure), settings)
    if _is_overflow(failure):
        text = f"The conversation is too long for {settings.name}: {said}"
        return ContextOverflow(text, limit=failure.limit or stated_limit(failure.text))
    if failure.status in _REFUSING and (quirk := refused_for(failure.text, settings.quirks)):
        return QuirkFound(quirk, said)
    if failure.status == HTTPStatus.PAYMENT_REQUIRED or failure.codes & _SPENT:
        return ModelError(f"The account of the API key has no credit left ({said}). Top it up, or set another key")
    if _is_passing(failure):
        return TransientFault(said, retry_after=failure.retry_after)
    return ModelError(_refusal(failure, said, settings))


_REFUSING = (None, 400, 404, 422, 500, 501)
"""The statuses of a refusal; templates of local servers fail with 500."""


def stated_limit(text: str) -> int | None:
    """The size of the context, in tokens, that a refusal tells."""
    found = _LIMIT.search(text)
    return None if found is None else int((found[1] or found[2]).replace(",", ""))


def _is_overflow(failure: Failure) -> bool:
    """Rate limits speak about tokens too; of those only a single request above the limit counts."""
    if failure.status == HTTPStatus.TOO_MANY_REQUESTS:
        return "request too large" in failure.text.lower()
    if failure.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or failure.codes & _OVERFLOW_CODES:
        return True
    return _OVERFLOW_TEXT.search(failure.text) is not None


def _is_passing(failure: Failure) -> bool:
    if failure.status is not None:
        return failure.status in (408, 409, 429) or failure.status >= 500
    return any(_PASSING.search(word) for word in (*failure.codes, failure.text.lower()))


def _refusal(failure: Failure, said: str, settings: OpenAIChatSettings) -> str:
    if failure.codes & _UNKNOWN_MODEL_CODES:
        return _unknown_model(said, settings)
    if failure.status in (401, 403) or _BAD_KEY.search(failure.text):
        what = "refused the API key" if settings.api_key else "wants an API key"
        return f"{_server(settings)} {what} ({said}). {_SET_KEY}"
    if _UNKNOWN_MODEL.search(failure.text):
        return _unknown_model(said, settings)
    if failure.status in (404, 405):
        return f"{_server(settings)} has no chat completions there ({said}). Check model.base_url and model.name"
    return f"{_server(settings)} refused the request ({said})"


def _unknown_model(said: str, settings: OpenAIChatSettings) -> str:
    return f"{_server(settings)} does not know the model {settings.name} ({said}). Change model.name"


def check(settings: OpenAIChatSettings) -> None:
    """Refuse a key and an address that cannot be sent to any server. Raises ModelError, which names the setting."""
    if bad := _UNPRINTABLE.search((settings.api_key or "").strip()):
        raise ModelError(f"The API key holds a character that no key has (U+{ord(bad.group()):04X}). {_SET_KEY}")
    try:
        url = urlsplit(settings.base_url)
        is_address = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:  # also what the attributes raise
        is_address = False
    if not is_address or not settings.base_url.isprintable() or " " in settings.base_url:
        shown = one_line(settings.base_url.rpartition("@")[2].partition("?")[0], settings)
        raise ModelError(f"model.base_url is not the address of a server: {shown}. One looks like https://host/v1")


def unusable(error: Exception, settings: OpenAIChatSettings) -> ModelError:
    """The error of a connection that cannot even be prepared; its text may hold the password of a proxy."""
    return ModelError(
        f"{_server(settings)} cannot be called ({type(error).__name__}). "
        "Check model.base_url, and the variables that name a proxy"
    )


_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def is_openai(settings: OpenAIChatSettings) -> bool:
    """Whether the server is OpenAI's own, in any of its regions."""
    url = urlsplit(settings.base_url)
    return url.scheme == "https" and f".{url.hostname}".endswith(f".{urlsplit(OPENAI_BASE_URL).hostname}")


def unreachable(error: Exception, settings: OpenAIChatSettings) -> TransientFault:
    """The fault of a request that got no answer at all."""
    return TransientFault(f"no answer: {one_line(_root_cause(error), settings)}", unreachable=True)


def web_page(settings: OpenAIChatSettings) -> ModelError:
    """The error of an address that serves people."""
    return ModelError(f"{_server(settings)} answered with a web page. Check model.base_url; it often ends in /v1")


def broken(error: Exception, settings: OpenAIChatSettings) -> TransientFault:
    """The fault of an answer that stopped in the middle."""
    return TransientFault(f"the answer broke off: {one_line(_root_cause(error), settings)}")


def _root_cause(error: BaseException) -> str:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(error) or type(error).__name__


def wait_after(fault: TransientFault, attempt: int, settings: OpenAIChatSettings) -> RetryWait:
    """The wait before retry number ``attempt`` (from 1). Raises ModelError where waiting has no point any more."""
    backoff = settings.backoff
    allowed = backoff.unreachable_retries if fault.unreachable else backoff.retries
    if attempt > allowed:
        hint = "Check that it runs, and model.base_url" if fault.unreachable else "Try again later"
        raise ModelError(f"{_server(settings)} failed {attempt} times, last: {fault.reason}. {hint}") from fault
    wish = fault.retry_after or 0.0
    if wish > backoff.cap:
        raise ModelError(
            f"{_server(settings)} asks to wait {wish:.0f} s, longer than the {backoff.cap:.0f} s that a request "
            f"waits ({fault.reason}). Try again later"
        ) from fault
    return RetryWait(attempt=attempt, delay=max(wish, _backoff(backoff, attempt)), reason=fault.reason)


def _backoff(backoff: Backoff, attempt: int) -> float:
    return min(backoff.cap, backoff.base * 2.0 ** (attempt - 1)) * _RANDOM.uniform(0.5, 1.0)


def _server(settings: OpenAIChatSettings) -> str:
    """The server for people, without credentials that a URL may carry."""
    url = urlsplit(settings.base_url)
    return f"The model server {url._replace(netloc=url.netloc.rpartition('@')[2], query='').geturl()}"


_KEY_LIKE = re.compile(r"\b(?:(?:sk|gsk|xai|hf|nvapi|ghp|gho)[-_]|AIza)[\w*.-]{6,}|\bbearer\s+\S+", re.IGNORECASE)
_SHORTEST_SECRET = 8


def one_line(text: str, settings: OpenAIChatSettings) -> str:
    """Text of a server as one bounded line, with the key and whatever looks like one taken out."""
    key = settings.api_key or ""
    if len(key) >= _SHORTEST_SECRET:
        text = text.replace(key, "[redacted]")
    line = " ".join(_KEY_LIKE.sub("[redacted]", text).split()).rstrip(".")
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
