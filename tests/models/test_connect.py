"""What is checked and kept back before the first request."""

import pytest

from agent_lsp.models.settings import OPENAI_BASE_URL
from tests.models.test_openai_chat import KEY, ask, ask_in_vain, model_at
from tests.support.openai_server import OpenAIServer

IDENTITY = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}


@pytest.mark.requirement("F76")
async def test_model_sends_no_identity_of_openai_to_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    with OpenAIServer() as server:
        server.reply_text("Hello you")
        async with model_at(server.base_url) as model:
            await ask(model)
    assert [name for name in server.requests[0].headers if name in ("openai-organization", "openai-project")] == []


@pytest.mark.parametrize(
    ("base_url", "identity"),
    [
        (OPENAI_BASE_URL, ("org-1", "proj-1")),
        ("https://eu.api.openai.com/v1/", ("org-1", "proj-1")),
        ("https://API.openai.com:443/v1", ("org-1", "proj-1")),
        ("http://api.openai.com/v1", (None, None)),
        ("https://notapi.openai.com/v1", (None, None)),
        ("https://api.openai.com.example.org/v1", (None, None)),
        ("https://api.openai.com@example.org/v1", (None, None)),
        ("https://example.org/api.openai.com/v1", (None, None)),
    ],
)
@pytest.mark.requirement("F76")
async def test_model_keeps_the_identity_of_openai_for_openai(
    monkeypatch: pytest.MonkeyPatch, base_url: str, identity: tuple[str | None, str | None]
) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    async with model_at(base_url) as model:
        client = model.connect()
    assert (client.organization, client.project) == identity


NO_ADDRESS = "model.base_url is not the address of a server: {}. One looks like https://host/v1"
BAD_KEY = "The API key holds a character that no key has ({}). "
BAD_KEY += "Set OPENAI_API_KEY, or name the right variable in model.api_key_env"
NO_CALL = "The model server {} cannot be called ({}). Check model.base_url, and the variables that name a proxy"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"api_key": "“key”"}, BAD_KEY.format("U+201C")),
        ({"api_key": "key\nkey"}, BAD_KEY.format("U+000A")),
        ({"api_key": "key\x7f"}, BAD_KEY.format("U+007F")),
        ({"base_url": "http://[bad/v1"}, NO_ADDRESS.format("http://[bad/v1")),
        ({"base_url": "http://host:99999/v1"}, NO_ADDRESS.format("http://host:99999/v1")),
        ({"base_url": "http://user:word@[bad/v1?key=k"}, NO_ADDRESS.format("[bad/v1")),
        ({"base_url": "localhost:8080/v1"}, NO_ADDRESS.format("localhost:8080/v1")),
        ({"base_url": "http:///v1"}, NO_ADDRESS.format("http:///v1")),
        ({"base_url": "http://ho\nst/v1"}, NO_ADDRESS.format("http://ho st/v1")),
        ({"base_url": ""}, NO_ADDRESS.format("")),
        ({"base_url": "http://☃️/v1"}, NO_CALL.format("http://☃️/v1", "InvalidURL")),
    ],
)
@pytest.mark.requirement("F56", "F76")
async def test_model_names_the_setting_that_can_never_work(changes: dict[str, str], error: str) -> None:
    async with model_at(**{"base_url": "http://127.0.0.1:9/v1", **changes}) as model:
        assert await ask_in_vain(model) == ([], error)


@pytest.mark.requirement("F56", "F76")
async def test_model_names_the_proxy_that_can_never_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"gopher://user:{KEY}@host")
    async with model_at("http://host/v1") as model:
        assert await ask_in_vain(model) == ([], NO_CALL.format("http://host/v1", "ValueError"))
