"""The error tree. A denial is a value, not an error.

AgentLspError            what the human should hear; fronts render it
├── ConfigurationError   wrong settings or usage (exit code 2)
│   └── HookContractError    a hook broke the typed contract (section A of the specification)
├── TranscriptError      a history in an order that no model server accepts
├── ModelError           the model endpoint failed or refused
│   └── ContextOverflow      the history does not fit the model; compacting it helps, sending it again does not
├── AgentLimitError      a run ended at a limit
└── PromptRejected       a hook refused the prompt; nothing has entered history
ToolError                what the model should hear; becomes an error result in ``agent/calls.py`` alone
"""


class AgentLspError(Exception):
    """What the human should hear: what happened, where, and what to do next."""


class ConfigurationError(AgentLspError):
    """Settings or usage that cannot work; nothing has been run."""


class HookContractError(ConfigurationError):
    """A hook, or its registration, broke the typed contract."""


class TranscriptError(AgentLspError):
    """A message that would leave tool calls and tool results unpaired."""


class ModelError(AgentLspError):
    """The model endpoint could not be reached, refused the request, or broke the stream."""


class ContextOverflow(ModelError):
    """The request is longer than the model's context; the same request never succeeds (F53).

    ``limit`` is the context's size in tokens, where the server said it.
    """

    def __init__(self, message: str, *, limit: int | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class AgentLimitError(AgentLspError):
    """A run ended at one of its limits; the history is paired and the next prompt works."""


class PromptRejected(AgentLspError):
    """A configured hook refused the prompt before history was touched (B25)."""


class ToolError(Exception):
    """A failure that the model can act on.

    ``code`` is a snake_case word, ``message`` one or more sentences; the model reads ``Error [code]: message``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
