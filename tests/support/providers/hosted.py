"""Providers on the net."""

import json
from itertools import pairwise

from tests.support.openai_server import DONE, Answer, Json, chunk, event, tool_call, usage_chunk
from tests.support.providers.base import Call, Provider, Turn, alternates, halves, late_system, refused, roles, stream


def _error(status: int, message: str, kind: str = "invalid_request_error", **more: object) -> Answer:
    """OpenAI's shape, which many share."""
    return refused(status, {"error": {"message": message, "type": kind, "param": None, "code": None, **more}})


class OpenAI(Provider):
    name = "openai"
    title = "OpenAI (reasoning models)"
    deviations = (
        "`max_tokens` is refused in favour of `max_completion_tokens`",
        "a `temperature` other than 1 is refused",
        "waits are asked for in `retry-after-ms`",
    )
    quirks = {"max_completion_tokens": True, "no_temperature": True}
    limit = 128_000

    def refusal(self, body: Json) -> Answer | None:
        if "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            return _error(400, text, param="max_tokens", code="unsupported_parameter")
        if body.get("temperature", 1) != 1:
            text = "Unsupported value: 'temperature' does not support 0.2. Only the default (1) value is supported."
            return _error(400, text, param="temperature", code="unsupported_value")
        return None

    def overflow(self) -> Answer:
        text = "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens."
        return _error(400, text, param="messages", code="context_length_exceeded")

    def bad_key(self) -> Answer:
        return _error(401, "Incorrect API key provided: sk-wrong1234.", code="invalid_api_key")

    def unknown_model(self) -> Answer:
        return _error(404, "The model `m` does not exist or you do not have access to it.", code="model_not_found")

    def busy(self) -> Answer:
        body = {"error": {"message": "Rate limit reached for m", "type": "tokens", "code": "rate_limit_exceeded"}}
        return refused(429, body, retry_after_ms="20")


class Azure(Provider):
    name = "azure"
    title = "Azure OpenAI"
    deviations = (
        "the first chunk has no choices, only what its filter found; later ones have a choice without a delta",
        "`stream_options` is refused by older API versions",
        "codes of errors are strings of numbers or words of its own (`DeploymentNotFound`)",
    )
    quirks = {"no_stream_options": True}
    limit = 16_385

    def refusal(self, body: Json) -> Answer | None:
        if "stream_options" in body:
            return _error(400, "Unrecognized request argument supplied: stream_options")
        return None

    def says(self, turn: Turn) -> Answer:
        filtered = {"hate": {"filtered": False, "severity": "safe"}}
        head = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
        tail = {"id": "", "choices": [{"index": 0, "finish_reason": None, "content_filter_results": filtered}]}
        return stream(
            head,
            chunk({"role": "assistant", "content": None}),
            *(chunk({"content": piece}) for piece in halves(turn.text)),
            *self.call_chunks(turn.calls),
            chunk(finish_reason=self.finish(turn)),
            tail,
        )

    def overflow(self) -> Answer:
        text = "This model's maximum context length is 16385 tokens. However, your messages resulted in 20000 tokens."
        return _error(400, text, code="context_length_exceeded")

    def bad_key(self) -> Answer:
        text = "Access denied due to invalid subscription key or wrong API endpoint."
        return refused(401, {"error": {"code": "401", "message": text}})

    def unknown_model(self) -> Answer:
        text = "The API deployment for this resource does not exist."
        return refused(404, {"error": {"code": "DeploymentNotFound", "message": text}})

    def busy(self) -> Answer:
        text = "Requests have exceeded the token rate limit of your current tier. Please retry after 1 second."
        return refused(429, {"error": {"code": "429", "message": text}}, retry_after="0.02")


class DeepSeek(Provider):
    name = "deepseek"
    title = "DeepSeek"
    deviations = (
        "comments keep the connection alive while it thinks",
        "reasoning comes in `reasoning_content`, and in a round with tools it must go back",
        "the usage stands in the chunk of the finish reason; cached input in `prompt_cache_hit_tokens`",
        "the wrong model is a 400, an empty account a 402",
    )
    quirks = {"echo_reasoning": "reasoning_content"}
    limit = 131_072

    def refusal(self, body: Json) -> Answer | None:
        for index, message in enumerate(body["messages"]):
            if message["role"] == "assistant" and "reasoning_content" not in message:
                return _error(
                    400, f"Missing `reasoning_content` field in the assistant message at message index {index}."
                )
        return None

    def says(self, turn: Turn) -> Answer:
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4}
        return stream(
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
            *(chunk({"content": None, "reasoning_content": piece}) for piece in halves(turn.reasoning)),
            *(chunk({"content": piece, "reasoning_content": None}) for piece in halves(turn.text)),
            *self.call_chunks(turn.calls),
            chunk({"content": ""}, self.finish(turn), usage=usage),
            between=b": keep-alive\n\n",
        )

    def overflow(self) -> Answer:
        text = "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens."
        return _error(400, text, code="invalid_request_error")

    def bad_key(self) -> Answer:
        return _error(401, "Authentication Fails, Your api key: ****1234 is invalid", "authentication_error")

    def unknown_model(self) -> Answer:
        return _error(400, "Model Not Exist", code="invalid_request_error")

    def busy(self) -> Answer:
        return _error(503, "Service is too busy", "service_unavailable_error")


class Gemini(Provider):
    name = "gemini"
    title = "Gemini (its OpenAI endpoint)"
    deviations = (
        "calls have no `index`, their arguments may come in pieces, and the finish reason is `stop`",
        "calls carry a signature in `extra_content`, sometimes in a delta of its own, which must go back",
        "results want the tool's `name`",
        "errors come in a list; a wrong key is a 400",
    )
    quirks = {"tool_names": True}
    quirks_of_others = {"thought_signatures": True}
    limit = 1_048_576

    def refusal(self, body: Json) -> Answer | None:
        for message in body["messages"]:
            for number, call in enumerate(message.get("tool_calls", ())):
                signed = call.get("extra_content", {}).get("google", {}).get("thought_signature")
                if number == 0 and signed not in ("signed", "skip_thought_signature_validator"):
                    return self._error(400, "Function call is missing a thought_signature in functionCall parts.")
            if message["role"] == "tool" and "name" not in message:
                text = "* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty."
                return self._error(400, text)
        return None

    @staticmethod
    def _error(status: int, message: str, code: str = "INVALID_ARGUMENT") -> Answer:
        return refused(status, [{"error": {"code": status, "message": message, "status": code}}])

    def finish(self, turn: Turn) -> str:
        return "stop"

    def call_chunks(self, calls: tuple[Call, ...]) -> list[Json]:
        chunks = []
        signature = {"google": {"thought_signature": "signed"}}
        for number, (name, arguments) in enumerate(calls):
            begin, *rest = halves(json.dumps(arguments))
            head: Json = {
                "id": f"function-call-{number}",
                "type": "function",
                "function": {"name": name, "arguments": begin},
            }
            chunks.append(chunk({"role": "assistant", "tool_calls": [head]}))
            chunks += [chunk({"tool_calls": [{"function": {"arguments": piece}}]}) for piece in rest]
            if number == 0:
                chunks.append(chunk({"tool_calls": [{"extra_content": signature}]}))
        return chunks

    def overflow(self) -> Answer:
        text = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
        return self._error(400, text)

    def bad_key(self) -> Answer:
        return self._error(400, "API key not valid. Please pass a valid API key.")

    def unknown_model(self) -> Answer:
        text = "models/m is not found for API version v1main, or is not supported for generateContent."
        return self._error(404, text, "NOT_FOUND")

    def busy(self) -> Answer:
        return self._error(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED")


class Mistral(Provider):
    name = "mistral"
    title = "Mistral"
    deviations = (
        "unknown fields, `stream_options` among them, are refused with 422 and a list of places",
        "a user message may not follow a tool result, nor a system message anything but the beginning",
        "ids of calls are nine letters and digits, also those of calls that another model made",
        "a call comes whole in one chunk; reasoning comes as parts of the content",
    )
    quirks = {"no_stream_options": True, "system_first": True, "strict_roles": True}
    quirks_of_others = {"short_call_ids": True}
    limit = 32_768

    def refusal(self, body: Json) -> Answer | None:
        if "stream_options" in body:
            place = ["body", "stream_options", "include_usage"]
            detail = [{"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": True}]
            return self._error(422, {"detail": detail}, "invalid_request_error")
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                if len(call["id"]) != 9 or not call["id"].isalnum():
                    text = f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                    return self._error(400, text, "invalid_function_call", "3280")
        for before, after in pairwise(roles(body)):
            if after == "system" or (before, after) == ("tool", "user"):
                text = f"Unexpected role '{after}' after role '{before}'"
                return self._error(400, text, "invalid_request_message_order", "3230")
        return None

    @staticmethod
    def _error(status: int, message: object, kind: str, code: str | None = None) -> Answer:
        return refused(status, {"object": "error", "message": message, "type": kind, "param": None, "code": code})

    def says(self, turn: Turn) -> Answer:
        thought = [{"type": "thinking", "thinking": [{"type": "text", "text": turn.reasoning}]}]
        calls = [
            tool_call(index, f"mistral0{index}", name, json.dumps(arguments))
            for index, (name, arguments) in enumerate(turn.calls)
        ]
        usage = {"prompt_tokens": 10, "total_tokens": 15, "completion_tokens": 5}
        return stream(
            chunk({"role": "assistant", "content": ""}),
            *([chunk({"content": thought})] if turn.reasoning else []),
            *(chunk({"content": piece}) for piece in halves(turn.text)),
            chunk({"content": "", **({"tool_calls": calls} if calls else {})}, self.finish(turn), usage=usage),
        )

    def overflow(self) -> Answer:
        text = "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length"
        return self._error(400, text, "invalid_request_invalid_args", "3051")

    def bad_key(self) -> Answer:
        return refused(401, {"detail": "Unauthorized"})

    def unknown_model(self) -> Answer:
        return self._error(400, "Invalid model: m", "invalid_model", "1500")

    def busy(self) -> Answer:
        return self._error(429, "Requests rate limit exceeded", "rate_limited", "1300")


class OpenRouter(Provider):
    name = "openrouter"
    title = "OpenRouter"
    deviations = (
        "comments keep the connection alive",
        "an error in the middle is a chunk with an `error` and the finish reason `error`",
        "what the provider behind it said stands in `error.metadata.raw`",
        "the usage tells the cost",
        "models without tools: 404 “No endpoints found that support tool use”",
    )
    quirks = {"system_first": True, "strict_roles": True}
    limit = 131_072

    def refusal(self, body: Json) -> Answer | None:
        if late_system(body) or not alternates(body):
            role = "system" if late_system(body) else "user"
            raw = {"object": "error", "message": f"Unexpected role '{role}' after role 'tool'", "code": "3230"}
            metadata = {"raw": json.dumps(raw), "provider_name": "Mistral"}
            return refused(400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}})
        return None

    def says(self, turn: Turn) -> Answer:
        usage = {**usage_chunk(10, 5)["usage"], "cost": 0.25}
        details = {"type": "reasoning.text", "text": turn.reasoning}
        return stream(
            *([chunk({"reasoning": turn.reasoning, "reasoning_details": [details]})] if turn.reasoning else []),
            *(chunk({"role": "assistant", "content": piece}) for piece in halves(turn.text)),
            *self.call_chunks(turn.calls),
            chunk({"role": "assistant", "content": ""}, self.finish(turn), native_finish_reason="STOP"),
            {"id": "gen-1", "choices": [], "usage": usage},
            between=b": OPENROUTER PROCESSING\n\n",
        )

    def overflow(self) -> Answer:
        text = "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens."
        return refused(400, {"error": {"message": text, "code": 400}})

    def bad_key(self) -> Answer:
        return refused(401, {"error": {"message": "User not found.", "code": 401}})

    def unknown_model(self) -> Answer:
        return refused(400, {"error": {"message": "m is not a valid model ID", "code": 400}})

    def busy(self) -> Answer:
        broken = chunk({"content": ""}, "error", error={"code": 502, "message": "Provider disconnected"})
        return Answer(pieces=(event(chunk({"content": "Hal"})), event(broken), DONE))
