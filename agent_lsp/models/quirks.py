"""What servers want otherwise, and the refusals that tell it (F55): the one table of quirks.

Invariant: a quirk is found by a refusal of a request that did not have it yet, so a request is sent again at most once
for each quirk.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

QuirkName: TypeAlias = Literal[
    "no_stream_options",
    "max_completion_tokens",
    "no_temperature",
    "no_reasoning_effort",
    "echo_reasoning",
    "thought_signatures",
    "system_first",
    "system_as_user",
    "strict_roles",
    "tool_names",
    "short_call_ids",
    "content_not_null",
    "tools_by_schema",
    "no_response_format",
]
QuirkValue: TypeAlias = bool | str
Quirks: TypeAlias = Mapping[str, QuirkValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """``effect`` is what we then do; ``refusal`` recognises the text with which a server asks for it.

    It can be found only where the quirk ``within`` is in force.
    """

    name: QuirkName
    effect: str
    refusal: re.Pattern[str]
    value: QuirkValue = True
    within: QuirkName | None = None


def _quirk(
    name: QuirkName, effect: str, refusal: str, *, value: QuirkValue = True, within: QuirkName | None = None
) -> Quirk:
    pattern = re.compile(refusal, re.IGNORECASE | re.DOTALL)
    return Quirk(name=name, effect=effect, refusal=pattern, value=value, within=within)


_UNWANTED = r"(unsupported|unrecogni[sz]ed|unknown|unexpected|not (support|permit|allow|recogni)|does ?n[o']t support|\
only the default|deprecated|extra_forbidden|invalid)"

# The more particular ones first: of several that a text fits, the first that is not in force yet is taken.
QUIRKS: tuple[Quirk, ...] = (
    _quirk("no_stream_options", "`stream_options` is not sent", r"stream_options|include_usage"),
    _quirk(
        "max_completion_tokens",
        "the bound on the answer is sent as `max_completion_tokens`, not as `max_tokens`",
        r"max_tokens.{0,80}max_completion_tokens",
    ),
    _quirk(
        "no_temperature",
        "`temperature` is not sent",
        rf"{_UNWANTED}.{{0,80}}temperature|temperature.{{0,80}}{_UNWANTED}",
    ),
    _quirk(
        "no_reasoning_effort",
        "`reasoning_effort` is not sent",
        rf"{_UNWANTED}.{{0,80}}reasoning_effort|reasoning_effort.{{0,80}}{_UNWANTED}",
    ),
    _quirk(
        "echo_reasoning",
        "the model's reasoning goes back with its answers, in the field that this names",
        r"missing.{0,20}reasoning_content|reasoning_content.{0,60}(missing|must be passed back|is required)",
        value="reasoning_content",
    ),
    _quirk(
        "thought_signatures",
        "calls that came without a signature are sent with the one that says so",
        r"missing a .?thought_?signature",
    ),
    _quirk(
        "system_as_user",
        "the standing prompt is a user message",
        r"system role (is )?not supported|(does not|doesn't) support .?system.? (role|messages?|with)|"
        r"role.{0,20} does not support .?system",
    ),
    _quirk(
        "system_first",
        "context of hooks is a user message with our tag, so that the only system message is the first",
        r"system message must be (at the beginning|the first)|(unexpected|got|after) .{0,12}role.{0,3} .?system|"
        r"got system",
    ),
    _quirk(
        "strict_roles",
        "as `system_first`; user messages in a row become one; a word of ours stands between a result and the user",
        r"roles? must alternate|unexpected role .?user.? after role|expected last role|consecutive .{0,20}(user|role)",
    ),
    _quirk(
        "tool_names",
        "tool results carry the tool's name",
        r"function_response\.name|tool messages?.{0,20}must have.{0,6}name",
    ),
    _quirk(
        "short_call_ids",
        "ids of calls are nine letters and digits",
        r"tool call id.{0,80}length of 9",
    ),
    _quirk(
        "content_not_null",
        "an answer of calls alone has an empty text, not none",
        r"(invalid|unsupported).{0,30}content.{0,20}(nil|null|none)|"
        r"content.{0,30}(must not|cannot|can't) be (null|none)|"
        r"content.{0,20}(field )?(is )?required",
    ),
    _quirk(
        "tools_by_schema",
        "tools are described in the prompt, and answers are held to a JSON schema (`response_format`)",
        r"(does not|doesn't|do not|not) support.{0,12} (tools?\b|tool.?(use|call|choice)|function.?call)|"
        r"endpoints found that support tool|enable-auto-tool-choice|tools param requires|"
        r"(tools?|tool_choice|function.?call\w*).{0,30}(is|are) not (supported|available|enabled)",
    ),
    _quirk(
        "no_response_format",
        "answers are held to the schema by the prompt alone",
        r"response_format|json_schema",
        within="tools_by_schema",
    ),
)
NAMES: tuple[str, ...] = get_args(QuirkName)


def refused_for(text: str, in_force: Quirks) -> Quirk | None:
    """The quirk that a refusal asks for, unless it is in force already, or switched off by hand."""
    return next(
        (
            quirk
            for quirk in QUIRKS
            if quirk.name not in in_force
            and (quirk.within is None or in_force.get(quirk.within))
            and quirk.refusal.search(text)
        ),
        None,
    )
