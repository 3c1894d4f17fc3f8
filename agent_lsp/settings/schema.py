"""The settings file as types (S2), hooks aside, which ``hooks.settings`` reads. Later features do nothing yet."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agent_lsp.models.quirks import QuirkName


class Section(BaseModel):
    """A frozen group of settings without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PriceSettings(Section):
    """What a million tokens cost, for the cost of turns and sessions."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0, description="of input that the server had read before")


class ModelSettings(Section):
    """Which model answers, and where. Never read from a workspace (F71)."""

    name: str | None = Field(default=None, min_length=1, description="the model's name at the endpoint")
    base_url: str | None = Field(default=None, min_length=1, description="an OpenAI-compatible endpoint")
    api_key_env: str = Field(default="OPENAI_API_KEY", min_length=1, description="the variable that holds the key")
    context_window: int | None = Field(
        default=None, gt=0, description="tokens; learned from the server's refusal where it is not set"
    )
    max_output_tokens: int | None = Field(default=None, gt=0, description="bound on one answer")
    temperature: float | None = Field(default=None, ge=0, le=2, description="sent as it is where it is set")
    reasoning_effort: str | None = Field(default=None, description="sent as it is where it is set")
    quirks: dict[QuirkName, bool | str] = Field(
        default_factory=dict, description="what the server wants otherwise; false keeps one from being found"
    )
    prices: PriceSettings | None = Field(default=None, description="per million tokens, in any currency")


class PermissionSettings(Section):
    """Rules and modes."""

    mode: Literal["default", "accept_edits", "plan", "dont_ask", "bypass"] = "default"
    deny: tuple[str, ...] = Field(default=(), strict=False)
    ask: tuple[str, ...] = Field(default=(), strict=False)
    allow: tuple[str, ...] = Field(default=(), strict=False)
    additional_directories: tuple[str, ...] = Field(default=(), strict=False)
    approval_timeout: float = Field(default=600, gt=0, description="seconds until an unanswered question is a no")
    answer_guard_ms: float = Field(default=400, ge=0, description="an Allow that comes sooner is asked again; 0 is off")


class AgentSettings(Section):
    """The loop."""

    max_turns: int = Field(default=50, gt=0, description="model requests in one run")
    instructions: tuple[str, ...] = Field(
        default=("AGENTS.md", "CLAUDE.md"), strict=False, description="names of files that tell the agent how to work"
    )
    builtin_hooks: tuple[str, ...] = Field(default=("block-dangerous-bash",), strict=False)


class ValidatorEntry(Section):
    """One validator of the project's own."""

    name: str = Field(min_length=1)
    command: Annotated[str, Field(min_length=1)] | Annotated[tuple[str, ...], Field(min_length=1, strict=False)] = (
        Field(description="a line for the shell, or a list of words")
    )
    paths: tuple[str, ...] = Field(default=(), strict=False, description="patterns of the files that it is about")
    timeout: float = Field(default=60, gt=0, description="seconds")
    directory: str = "."
    kind: Literal["lint", "types", "build", "test"] = "lint"
    tool: str = Field(default="", description="whose output it prints, for the findings")


class ValidationSettings(Section):
    """What runs when the agent stops."""

    enabled: bool = True
    detect: bool = Field(default=True, description="find the project's tools where no validator is configured")
    skip: tuple[str, ...] = Field(default=(), strict=False, description="names of detected validators to leave out")
    validators: tuple[ValidatorEntry, ...] = Field(default=(), strict=False)
    max_rounds: int = Field(default=3, ge=0, description="how often a failure goes back to the model in one prompt")
    timeout: float = Field(default=300, gt=0, description="seconds for all validation of one prompt")
    baseline: bool = Field(default=True, description="keep what failed before the agent's changes from the model")


class SessionSettings(Section):
    """Stored sessions. Never read from a workspace: it would say what of the user's is deleted."""

    keep_days: float = Field(default=30, gt=0, description="days after which a session is deleted that nobody used")


Later = Annotated[Any, Field(description="belongs to a feature that is not there yet")]


class Settings(Section):
    """All settings, merged."""

    model: ModelSettings = Field(default_factory=ModelSettings)
    permissions: PermissionSettings = Field(default_factory=PermissionSettings)
    agent: AgentSettings = Field(default_factory=AgentSettings)
    hooks_http_allow: tuple[str, ...] = Field(default=(), strict=False)
    validation: ValidationSettings = Field(default_factory=ValidationSettings)
    sessions: SessionSettings = Field(default_factory=SessionSettings)
    mcp_servers: Later = None


SECTIONS: dict[str, type[Section]] = {
    "model": ModelSettings,
    "permissions": PermissionSettings,
    "agent": AgentSettings,
    "validation": ValidationSettings,
    "sessions": SessionSettings,
}
LATER = ("mcp_servers",)
