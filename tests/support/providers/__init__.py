"""Servers that deviate from OpenAI's wire as the well-known ones do; docs/models.md lists what each of them states."""

from tests.support.providers.base import Provider
from tests.support.providers.hosted import Azure, DeepSeek, Gemini, Mistral, OpenAI, OpenRouter
from tests.support.providers.local import LlamaCpp, LmStudio, Ollama, Vllm

PROVIDERS: tuple[Provider, ...] = (
    OpenAI(),
    Azure(),
    Ollama(),
    Vllm(),
    LlamaCpp(),
    LmStudio(),
    DeepSeek(),
    Gemini(),
    Mistral(),
    OpenRouter(),
)
