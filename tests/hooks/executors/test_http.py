"""A hook as one POST request to a real server."""

import json

import anyio
import anyio.lowlevel
import pytest

from agent_lsp.approvals import PermissionBehavior
from agent_lsp.hooks.answer import DEFAULT_REASON, Answer
from agent_lsp.hooks.executors.http import MAX_BODY, run_http
from agent_lsp.hooks.runner import Occasion
from agent_lsp.hooks.settings import ConfiguredHook
from tests.hooks.configured import configured, make_runner
from tests.hooks.executors.server import HookServer, Request, Response, unreached

PAYLOAD = json.dumps({"event": "PreToolUse", "prompt": "grün \ud800"})


def hook(url: str, timeout: float = 30, headers: dict[str, str] | None = None) -> ConfiguredHook:
    return configured("PreToolUse", {"type": "http", "url": url, "timeout": timeout, "headers": headers})


async def post(response: Response, *, timeout: float = 30) -> Answer:
    with HookServer(response) as server:
        url = f"http://127.0.0.1:{server.port}/hook"
        return await run_http(hook(url, timeout), PAYLOAD, private_hosts=["127.0.0.1"])


@pytest.mark.requirement("B11")
async def test_payload_and_headers_arrive() -> None:
    with HookServer(Response()) as server:
        url = f"http://user:secret@localhost:{server.port}/a%20b?c=d&e=%2F#part"
        answer = await run_http(
            hook(url, headers={"X-Key": "k", "Authorization": "Bearer t"}), PAYLOAD, private_hosts=["localhost"]
        )

    assert answer == Answer()
    (request,) = server.requests
    assert request == Request(
        method="POST", path="/a%20b?c=d&e=%2F", headers=request.headers, body=PAYLOAD.encode("ascii")
    )
    assert request.headers["host"] == f"localhost:{server.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == str(len(PAYLOAD))
    assert (request.headers["x-key"], request.headers["authorization"]) == ("k", "Bearer t")


@pytest.mark.requirement("B11", "F1")
async def test_payload_of_several_megabytes_arrives() -> None:
    payload = json.dumps({"text": "x" * 5 * 1024 * 1024})
    with HookServer(Response(body=b'{"block": true}')) as server:
        answer = await run_http(hook(f"http://127.0.0.1:{server.port}"), payload, private_hosts=["127.0.0.1"])

    assert answer == Answer(blocked=True, reason=DEFAULT_REASON)
    assert [request.body for request in server.requests] == [payload.encode()]


BLOCK = b'{"block": true, "reason": "no"}'
ASK = b'{"hookSpecificOutput": {"permissionDecision": "ask"}}'


@pytest.mark.requirement("B11", "B13", "B14")
@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (Response(), Answer()),
        (Response(status=204), Answer()),
        (Response(body=b"fine"), Answer()),
        (Response(body=b'{"additional_context": "gr\xc3\xbcn"}'), Answer(context="grün")),
        (Response(body=ASK), Answer(advice=PermissionBehavior.ASK)),
        (Response(body=b'{"updated_input": {"a": 1}}', status=201), Answer(updated_input={"a": 1})),
        (Response(body=BLOCK), Answer(blocked=True, reason="no")),
        (Response(body=b'{"decision": "block"}'), Answer(blocked=True, reason=DEFAULT_REASON)),
        (Response(body=b'{"decision": "maybe"}'), Answer(failure="decision is 'maybe'; known are block, approve")),
        (Response(status=400), Answer(failure="status 400")),
        (Response(status=400, body=b'{"additional_context": "lost"}'), Answer(failure="status 400")),
        (Response(status=400, body=b"{"), Answer(failure="status 400")),
        (Response(status=400, body=BLOCK), Answer(blocked=True, reason="no")),
        (Response(status=403, body=b'{"decision": "block"}'), Answer(blocked=True, reason=DEFAULT_REASON)),
        (Response(status=500), Answer(failure="status 500")),
        (Response(status=500, body=b"<h1>sorry</h1>"), Answer(failure="status 500")),
        (Response(status=500, body=BLOCK), Answer(blocked=True, reason="no")),
    ],
)
async def test_status_and_body_are_judged_together(response: Response, answer: Answer) -> None:
    assert await post(response) == answer


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("endless", [False, True])
async def test_body_is_read_to_64_kib_and_no_further(endless: bool) -> None:
    late = b" " * MAX_BODY + BLOCK
    early = BLOCK.ljust(MAX_BODY) + b"x" * 10_000_000

    assert MAX_BODY == 64 * 1024
    assert await post(Response(body=late, endless=endless)) == Answer()
    assert await post(Response(body=early, endless=endless)) == Answer(blocked=True, reason="no")


@pytest.mark.requirement("B11", "B14")
@pytest.mark.parametrize(
    "response", [Response(silent=True), Response(body=BLOCK, stalls=True)], ids=["no head", "half a body"]
)
async def test_server_that_takes_too_long_is_left(response: Response) -> None:
    assert await post(response, timeout=0.3) == Answer(failure="timed out after 0.3 s")


@pytest.mark.requirement("F60")
async def test_request_ends_when_the_run_is_cancelled() -> None:
    with HookServer(Response(silent=True)) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_http(hook(url), PAYLOAD, private_hosts=["127.0.0.1"]))
            while not server.requests:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    assert len(server.requests) == 1  # and the server could end, because the client has left


@pytest.mark.requirement("B14")
async def test_server_that_is_not_there_is_a_failure() -> None:
    with HookServer(Response()) as server:
        url = f"http://127.0.0.1:{server.port}"

    answer = await run_http(hook(url), PAYLOAD, private_hosts=["127.0.0.1"])

    assert answer.failure is not None
    assert answer.failure.startswith("the request failed: ConnectError")


@pytest.mark.requirement("B14")
async def test_server_that_speaks_no_tls_is_a_failure() -> None:
    with HookServer(Response()) as server:
        answer = await run_http(hook(f"https://127.0.0.1:{server.port}", 10), PAYLOAD, private_hosts=["127.0.0.1"])

    assert answer.failure is not None
    assert server.requests == []


@pytest.mark.requirement("B12")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(status: int) -> None:
    with unreached() as port:
        answer = await post(Response(status=status, headers={"Location": f"http://127.0.0.1:{port}/"}))

    assert answer == Answer(failure=f"status {status}: redirects are not followed")


@pytest.mark.requirement("B12", "F71")
async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with unreached() as proxy:
        for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)

        assert await post(Response(body=BLOCK)) == Answer(blocked=True, reason="no")


@pytest.mark.requirement("B12", "B15")
@pytest.mark.parametrize(("allowed", "blocked_by"), [((), None), (("LOCALHOST.",), "remote")])
async def test_runner_allows_the_hosts_of_the_settings(
    tmp_path_factory: pytest.TempPathFactory, allowed: tuple[str, ...], blocked_by: str | None
) -> None:
    with HookServer(Response(body=BLOCK)) as server:
        url = f"http://localhost:{server.port}/"
        remote = configured("PreToolUse", {"type": "http", "url": url, "name": "remote", "blocking": True})
        runner = make_runner(tmp_path_factory.getbasetemp(), {}, remote, private_hosts=allowed)
        outcome = await runner.run(Occasion(event="PreToolUse"))

    assert outcome.blocked_by == blocked_by
    assert len(server.requests) == len(allowed)
    assert [run.decision for run in runner.runs] == ["blocked" if allowed else "failed"]
