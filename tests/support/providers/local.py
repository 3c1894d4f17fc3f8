"""Providers that people run themselves. None of them asks for a key unless told to."""

import json

from tests.support.openai_server import Answer, Json, chunk, event, tool_call, usage_chunk
from tests.support.providers.base import Call, Provider, Turn, alternates, halves, late_system, refused, roles, stream


class Ollama(Provider):
    name = "ollama"
    title = "Ollama"
    deviations = (
        "each call comes whole in one chunk",
        "reasoning comes in `reasoning`",
        "models without tools are a 400 “does not support tools”",
        "a request longer than the context is cut without a word: set `model.context_window`",
    )
    quirks = {"tools_by_schema": True}
    limit = None
    asks_for_key = False

    def refusal(self, body: Json) -> Answer | None:
        if "tools" in body:
            return self._error(400, "registry.ollama.ai/library/m:latest does not support tools")
        return None

    @staticmethod
    def _error(status: int, message: str, kind: str = "api_error") -> Answer:
        return refused(status, {"error": {"message": message, "type": kind, "param": None, "code": None}})

    def says(self, turn: Turn) -> Answer:
        """Without tools, what it says is the JSON that it is held to."""
        replies = [json.dumps({"tool": name, "arguments": arguments}) for name, arguments in turn.calls]
        text = replies[0] if replies else json.dumps({"answer": turn.text})
        return super().says(Turn(text=text, reasoning=turn.reasoning))

    def unknown_model(self) -> Answer:
        return self._error(404, "model 'm' not found")

    def busy(self) -> Answer:
        return refused(503, {"error": {"message": "server busy, please try again. maximum pending requests exceeded"}})


class Vllm(Provider):
    name = "vllm"
    title = "vLLM (with a template as of Gemma)"
    deviations = (
        "errors are flat (`object: error`) in older versions",
        "templates may know no system role, or want user and assistant to take turns",
        "deltas of a call repeat `id` and `name` as null",
        "tools are refused unless it was started with a parser for them",
    )
    quirks = {"system_as_user": True, "strict_roles": True}

    def refusal(self, body: Json) -> Answer | None:
        if "system" in roles(body):
            return self._error(400, "System role not supported")
        if not alternates(body):
            return self._error(400, "Conversation roles must alternate user/assistant/user/assistant/...")
        return None

    @staticmethod
    def _error(status: int, message: str, kind: str = "BadRequestError") -> Answer:
        return refused(status, {"object": "error", "message": message, "type": kind, "param": None, "code": status})

    def reasoning(self, text: str) -> list[Json]:
        return [chunk({"reasoning_content": piece}) for piece in halves(text)]

    def call_chunks(self, calls: tuple[Call, ...]) -> list[Json]:
        chunks = []
        for index, (name, arguments) in enumerate(calls):
            head = tool_call(index, f"chatcmpl-tool-{index}", name, "")
            chunks.append(chunk({"tool_calls": [head]}))
            for piece in halves(json.dumps(arguments)):
                rest = {"index": index, "id": None, "type": None, "function": {"name": None, "arguments": piece}}
                chunks.append(chunk({"tool_calls": [rest]}))
        return chunks

    def overflow(self) -> Answer:
        text = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
        return self._error(400, text)

    def bad_key(self) -> Answer:
        return refused(401, {"error": "Unauthorized"})

    def unknown_model(self) -> Answer:
        return self._error(404, "The model `m` does not exist.", "NotFoundError")

    def busy(self) -> Answer:
        return Answer(
            pieces=(event({"error": {"message": "engine died", "type": "InternalServerError", "code": 500}}),)
        )


class LlamaCpp(Provider):
    name = "llama.cpp"
    title = "llama.cpp server (with a template as of Qwen)"
    deviations = (
        "what the template refuses is a 500, such as a system message that is not the first",
        "a request longer than the context tells the size in `n_ctx`",
        "the arguments come token by token; timings stand beside the usage",
        "it takes any model name",
    )
    quirks = {"system_first": True}
    knows_models = False

    def refusal(self, body: Json) -> Answer | None:
        if late_system(body):
            return self._error(500, "Jinja Exception: System message must be at the beginning.", "server_error")
        return None

    @staticmethod
    def _error(status: int, message: str, kind: str, **more: int) -> Answer:
        return refused(status, {"error": {"code": status, "message": message, "type": kind, **more}})

    def says(self, turn: Turn) -> Answer:
        deltas = [{"tool_calls": [tool_call(n, f"id{n}", name, "")]} for n, (name, _) in enumerate(turn.calls)]
        for number, (_, arguments) in enumerate(turn.calls):
            pieces = json.dumps(arguments)
            deltas += [{"tool_calls": [{"index": number, "function": {"arguments": piece}}]} for piece in pieces]
        return stream(
            chunk({"role": "assistant", "content": None}),
            *(chunk({"reasoning_content": piece}) for piece in halves(turn.reasoning)),
            *(chunk({"content": piece}) for piece in halves(turn.text)),
            *map(chunk, deltas),
            chunk(finish_reason=self.finish(turn)),
            {**usage_chunk(10, 5), "timings": {"prompt_n": 10}},
        )

    def overflow(self) -> Answer:
        text = "the request exceeds the available context size. try increasing the context size"
        return self._error(400, text, "exceed_context_size_error", n_prompt_tokens=9000, n_ctx=8192)

    def bad_key(self) -> Answer:
        return self._error(401, "Invalid API Key", "authentication_error")

    def busy(self) -> Answer:
        return self._error(503, "Loading model", "unavailable_error")


class LmStudio(Provider):
    name = "lm-studio"
    title = "LM Studio"
    deviations = (
        "errors of a stream come with status 200, as an `event: error`",
        "templates may want user and assistant to take turns",
        "ids of calls are numbers",
        "`response_format` of the type `json_object` is refused; `json_schema` works",
    )
    quirks = {"strict_roles": True}
    limit = 4096
    asks_for_key = False

    def refusal(self, body: Json) -> Answer | None:
        if late_system(body) or not alternates(body):
            return self._error('Error rendering prompt with jinja template: "Conversation roles must alternate".')
        return None

    @staticmethod
    def _error(message: str) -> Answer:
        payload = json.dumps({"error": {"message": message}})
        return Answer(pieces=(f"event: error\ndata: {payload}\n\n".encode(),))

    def call_id(self, index: int) -> str:
        return str(123456789 + index)

    def overflow(self) -> Answer:
        return self._error(
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough."
        )

    def unknown_model(self) -> Answer:
        error = {
            "message": "Model not found",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
        return refused(404, {"error": error})

    def busy(self) -> Answer:
        return refused(500, {"error": "Model is unloaded or still loading."})
