"""Runs a hook as one POST request, guarded against requests into the user's own network (B11, B12).

Invariants: the name is resolved once, every address that it has is checked, and the connection goes to a checked
address; nothing is sent where one of them is refused. No redirect is followed and no proxy is used.
"""

import ipaddress
import socket
from collections.abc import Collection, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

import anyio

from agent_lsp.hooks.answer import DEFAULT_REASON, Answer, UnreadableAnswer, parse_envelope
from agent_lsp.hooks.settings import ConfiguredHook

if TYPE_CHECKING:
    from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream, Response

MAX_BODY = 64 * 1024

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refused(Exception):
    """The request must not be made; the message says why."""


async def run_http(hook: ConfiguredHook, payload: str, *, private_hosts: Collection[str]) -> Answer:
    """Post the payload. ``private_hosts`` are the names that may lie in the user's own network (hooks_http_allow)."""
    try:
        with anyio.fail_after(hook.timeout):
            status, body = await _post(hook, payload.encode("ascii"), private_hosts)
    except TimeoutError:
        return Answer(failure=f"timed out after {hook.timeout:g} s")
    except Refused as error:
        return Answer(failure=f"the request was not sent: {error}")
    except Exception as error:  # the classes of the HTTP library and of TLS are many, and all mean the same here
        return Answer(failure=f"the request failed: {type(error).__name__}: {error}")
    return _judge(status, body)


def _judge(status: int, body: str) -> Answer:
    try:
        answer = parse_envelope(body)
    except UnreadableAnswer as error:
        answer = Answer(failure=str(error))
    if answer.blocked:
        return replace(answer, reason=answer.reason or DEFAULT_REASON)
    if status >= 400:
        return Answer(failure=f"status {status}")
    if status >= 300:
        return Answer(failure=f"status {status}: redirects are not followed")
    return answer


async def _post(hook: ConfiguredHook, payload: bytes, private_hosts: Collection[str]) -> tuple[int, str]:
    import httpcore2

    url = _checked_url(str(hook.target))
    backend = _checked_backend(private_hosts)
    headers = {"host": url.netloc.rpartition("@")[2], "content-type": "application/json", "accept": "application/json"}
    headers |= {name.lower(): value for name, value in hook.headers}
    async with (
        httpcore2.AsyncConnectionPool(network_backend=backend) as pool,
        pool.stream("POST", httpcore2.URL(url.geturl()), headers=list(headers.items()), content=payload) as response,
    ):
        return response.status, await _body(response)


async def _body(response: "Response") -> str:
    """At most the first 64 KiB of a body, as text."""
    body = bytearray()
    async with aclosing(response.aiter_stream()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= MAX_BODY:
                break
    return bytes(body[:MAX_BODY]).decode(errors="replace")


def _checked_url(text: str) -> SplitResult:
    try:
        url = urlsplit(text)
        port_is_valid = url.port is None or url.port > 0
    except ValueError as error:
        raise Refused(f"the address is not a URL: {error}") from error
    if url.scheme not in ("http", "https"):
        raise Refused(f"only http and https are used, not {url.scheme or 'a URL without a scheme'}")
    if not url.hostname or not port_is_valid:
        raise Refused("the address names no host and port")
    return url._replace(netloc=url.netloc.rpartition("@")[2], fragment="")


def _checked_backend(private_hosts: Collection[str]) -> "AsyncNetworkBackend":
    """A network backend that connects to checked addresses only; Host and SNI stay those of the URL."""
    import httpcore2

    class CheckedBackend(httpcore2.AsyncNetworkBackend):
        def __init__(self) -> None:
            self._network = httpcore2.AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: "Iterable[SOCKET_OPTION] | None" = None,
        ) -> "AsyncNetworkStream":
            address = await resolve_checked(host, port, private_hosts)
            return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)

    return CheckedBackend()


async def resolve_checked(host: str, port: int, private_hosts: Collection[str]) -> str:
    """One address of a host, after every address that it has was found to be public. Raises Refused."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if host.rstrip(".").lower() not in {name.rstrip(".").lower() for name in private_hosts}:
        for address in addresses:
            if not is_public(address):
                raise Refused(f"{host} is {address}, which is not a public address; hooks_http_allow names exceptions")
    return str(addresses[0])


_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: IPAddress) -> bool:
    """Whether an address, and the IPv4 address that it may carry, belongs to the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(inner):
            return False
        if address.ipv4_mapped is not None:
            return True
        if address.is_site_local:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
