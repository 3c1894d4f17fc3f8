"""What is set about a model endpoint. Values only: where they come from is ``agent_lsp/settings``'s business."""

from dataclasses import dataclass, field

from agent_lsp.messages import Usage
from agent_lsp.models.quirks import Quirks

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
class Prices:
    """What a million tokens cost; ``cached_input`` is the price of input that the server had read before."""

    input: float
    output: float
    cached_input: float | None = None

    def of(self, usage: Usage) -> float:
        """What a request with this usage costs."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = (usage.input_tokens - usage.cached_tokens) * self.input
        return (fresh + usage.cached_tokens * cached + usage.output_tokens * self.output) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIChatSettings:
    """A server that speaks OpenAI's chat completions, and how to speak with it.

    Timeouts are in seconds; ``read_timeout`` is the longest silence between two pieces of an answer. ``quirks`` are
    what the server wants otherwise (F55), by the names in ``quirks.QUIRKS``; one that is False is never found.
    ``context_window`` is in tokens.
    """

    name: str
    base_url: str = OPENAI_BASE_URL
    api_key: str | None = field(default=None, repr=False)
    max_output_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: str | None = None
    quirks: Quirks = field(default_factory=dict)
    context_window: int | None = None
    prices: Prices | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 300.0
    backoff: Backoff = field(default_factory=Backoff)
