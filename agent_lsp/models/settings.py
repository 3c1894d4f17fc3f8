"""What is set about a model endpoint. Values only: where they come from is ``agent_lsp/settings``'s business."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OPENAI_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """When a request is sent again: waits in seconds, from ``base`` doubling up to ``cap`` (F54).

    A server that asks for more than ``cap`` is not waited for. ``unreachable_retries`` counts where no answer came
    at all, which more often is a wrong setting than a passing fault.
    """

    base: float = 0.5
    cap: float = 60.0
    retries: int = 5
    unreachable_retries: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChatSettings:
    """A server that speaks OpenAI's chat completions, and how to speak with it.

    Timeouts are in seconds; ``read_timeout`` is the longest silence between two pieces of an answer. ``quirks`` are
    what a server wants otherwise (F55): ``no_stream_options`` and ``max_completion_tokens`` as flags,
    ``echo_reasoning`` as the name of the message field in which it wants its reasoning back.
    """

    name: str
    base_url: str = OPENAI_BASE_URL
    api_key: str | None = field(default=None, repr=False)
    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    quirks: Mapping[str, bool | str] = field(default_factory=dict)
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)
