"""No hook reaches into the user's own network: by no spelling, no redirect and no second look-up of a name."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from agent_lsp.hooks.answer import Answer
from agent_lsp.hooks.executors.http import Refused, is_public, resolve_checked, run_http
from tests.hooks.configured import configured
from tests.hooks.executors.server import HookServer, Response, unreached

PUBLIC, OTHER_PUBLIC = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"


class NamesLoop(asyncio.SelectorEventLoop):
    """An event loop with names of its own: each look-up of a name takes the next of its answers."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, list[Sequence[str]]] = {}
        self.asked: list[str] = []

    async def getaddrinfo(
        self,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        self.asked.append(name)
        if name not in self.names:
            return await super().getaddrinfo(host, port, family=family, type=type, proto=proto, flags=flags)
        if not self.names[name]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        found = []
        for address in self.names[name].pop(0):
            version = socket.AF_INET6 if ":" in address else socket.AF_INET
            found.append((version, socket.SOCK_STREAM, 6, "", (address, port)))
        return found


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": NamesLoop}


def names(**answers: list[Sequence[str]]) -> NamesLoop:
    """The running loop, told what a name's look-ups answer; an underscore stands for a dot."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, NamesLoop)
    loop.names = {name.replace("_", "."): answer for name, answer in answers.items()}
    return loop


async def post(url: str, *private_hosts: str) -> Answer:
    hook = configured("PreToolUse", {"type": "http", "url": url, "timeout": 10})
    return await run_http(hook, "{}", private_hosts=private_hosts)


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:PORT/",
        "http://127.1:PORT/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://0x7f000001:PORT/",
        "http://0177.0.0.1:PORT/",
        "http://0:PORT/",
        "http://0.0.0.0:PORT/",
        "http://[::1]:PORT/",
        "http://[::]:PORT/",
        "http://[0:0:0:0:0:0:0:1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://[::ffff:7f00:1]:PORT/",
        "http://[::127.0.0.1]:PORT/",
        "http://[fe80::1%25lo]:PORT/",
        "http://localhost:PORT/",
        "http://LOCALHOST.:PORT/",
        "http://example.com@127.0.0.1:PORT/",
        "http://example.com:80@127.0.0.1:PORT/",
        "http://127.0.0.1:PORT\\@example.com/",
        "http://127.0.0.1:PORT#@example.com/",
        "http://127.0.0.1:PORT?@example.com/",
        "http://127.0.0.1:PORT/\r\nHost: example.com",
        " http://127.0.0.1:PORT/",
        "HTTP://127.0.0.1:PORT/",
        "https://127.0.0.1:PORT/",
        "http://١٢٧.0.0.1:PORT/",
        "http://\uff11\uff12\uff17.0.0.1:PORT/",
        "http://①②⑦.0.0.1:PORT/",
        "http://127。0。0。1:PORT/",
        "http://ⓛocalhost:PORT/",
        "http://\ud800:PORT/",
        "ftp://127.0.0.1:PORT/",
        "gopher://127.0.0.1:PORT/",
        "file:///etc/passwd",
        "//127.0.0.1:PORT/",
        "127.0.0.1:PORT",
        "http:///path",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1:x/",
        "http://[127.0.0.1:PORT/",
    ],
)
async def test_request_into_the_own_network_never_leaves(url: str) -> None:
    with unreached() as port:
        answer = await post(url.replace("PORT", str(port)), "example.com")

    assert answer.failure is not None
    assert answer == Answer(failure=answer.failure)


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    ("address", "public"),
    [
        (PUBLIC, True),
        (OTHER_PUBLIC, True),
        ("::ffff:93.184.216.34", True),
        ("127.0.0.1", False),
        ("127.255.255.254", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("0.1.2.3", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("255.255.255.255", False),
        ("192.0.2.1", False),
        ("198.18.0.1", False),
        ("::", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("::127.0.0.1", False),
        ("64:ff9b::127.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b:1::10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("2002:a9fe:a9fe::", False),
        ("2001:0:7f00:1::", False),
        ("fe80::1", False),
        ("fec0::1", False),
        ("fc00::1", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("2001:db8::1", False),
    ],
)
def test_only_the_public_internet_is_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.requirement("B12")
@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1"],
        [PUBLIC, "127.0.0.1"],
        ["127.0.0.1", PUBLIC],
        [PUBLIC, OTHER_PUBLIC, "::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%lo"],
    ],
)
async def test_every_address_of_a_name_is_checked(addresses: list[str]) -> None:
    names(mixed_example=[addresses])

    with pytest.raises(Refused, match=r"^mixed\.example is .*, which is not a public address"):
        await resolve_checked("mixed.example", 80, ["other.example"])


@pytest.mark.requirement("B12")
async def test_name_with_public_addresses_alone_is_connected_to_one_of_them() -> None:
    loop = names(public_example=[[PUBLIC, OTHER_PUBLIC]])

    assert await resolve_checked("public.example", 80, []) in (PUBLIC, OTHER_PUBLIC)
    assert loop.asked == ["public.example"]


@pytest.mark.requirement("B12")
async def test_request_to_a_name_that_turns_out_private_never_leaves() -> None:
    with unreached() as port:
        names(rebinding_example=[[PUBLIC, "127.0.0.1"]])
        answer = await post(f"http://rebinding.example:{port}/")

    assert answer.failure is not None
    assert answer.failure.startswith("the request was not sent: rebinding.example is 127.0.0.1")


@pytest.mark.requirement("B12")
async def test_name_is_looked_up_once_and_the_connection_goes_to_that_address() -> None:
    with HookServer(Response(body=b'{"block": true}')) as server:
        loop = names(rebinding_example=[["127.0.0.1"], ["127.0.0.2"], [PUBLIC]])
        answer = await post(f"http://rebinding.example:{server.port}/", "rebinding.example")

    assert answer.blocked
    assert loop.asked == ["rebinding.example"]
    assert [request.headers["host"] for request in server.requests] == [f"rebinding.example:{server.port}"]


@pytest.mark.requirement("B12")
async def test_name_that_does_not_exist_is_a_failure() -> None:
    names(missing_example=[])

    answer = await post("http://missing.example/")

    assert answer.failure is not None
    assert "Name or service not known" in answer.failure


@pytest.mark.requirement("B12")
async def test_allowed_host_allows_no_other_name_of_its_address() -> None:
    with unreached() as port:
        answer = await post(f"http://127.0.0.1:{port}/", "localhost", "*", "", "127.0.0.1.example")
        longer = await post(f"http://sub.localhost:{port}/", "localhost")

    assert answer.failure is not None
    assert longer.failure is not None


class StuckLoop(NamesLoop):
    """Its look-ups never end."""

    async def getaddrinfo(self, *_args: Any, **_options: Any) -> list[Any]:
        await anyio.sleep_forever()
        return []


@pytest.mark.requirement("B5", "B14")
def test_look_up_ends_at_the_timeout() -> None:
    hook = configured("PreToolUse", {"type": "http", "url": "http://stuck.example/", "timeout": 0.05})

    with asyncio.Runner(loop_factory=StuckLoop) as runner:
        answer = runner.run(run_http(hook, "{}", private_hosts=[]))

    assert answer == Answer(failure="timed out after 0.05 s")
