"""Where an outbound call may go: judged on the very address about to be connected, never on a name alone."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
AddrInfo = tuple[
    int | socket.AddressFamily,
    int | socket.SocketKind,
    int,
    str,
    tuple[str, int] | tuple[str, int, int, int],
]


def _networks(*names: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(name) for name in names)


# Own tables, because `ipaddress.is_global` changed its answers between the Python releases we support.
OPENABLE = _networks(
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "100.64.0.0/10", "::1/128", "fc00::/7"
)
METADATA = _networks(
    "169.254.169.254/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
    "fd00:ec2::254/128", "fd20:ce::254/128",
)  # fmt: skip
_SPECIAL = _networks(
    "0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "2001::/23", "2001:db8::/32", "3fff::/20",
)  # fmt: skip
_GLOBAL_IPV6 = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
LONGEST_NAME = 253
HIGHEST_PORT = 65535
_ENTRY_FORMS = 'expected an address, a network or a host name, optionally with ":port"'
_URL_TEXT = re.compile(r"[\x21-\x7e]+")


class EgressRefusedError(OSError):
    """The destination is not one this tenant's calls may reach. The text names no credential and no path."""


class AllowListError(ValueError):
    """An egress allow-list entry is not usable; `index` is its place in the list."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """Addresses a tenant opened, on one port or on all of them (None)."""

    network: Network
    port: int | None = None

    def opens(self, address: Address, port: int) -> bool:
        return address in self.network and self.port in (None, port)


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """A name a tenant opened: whatever openable address it resolves to when it is connected."""

    name: str
    port: int | None = None

    def opens(self, host: str | None, port: int) -> bool:
        return host == self.name and self.port in (None, port)


@dataclass(frozen=True, slots=True)
class Destination:
    """The origin of a checked URL: lower-case host without brackets or trailing dot, and its port."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Public addresses, plus what the tenant's allow-list opens. The default opens nothing."""

    networks: tuple[AllowedNetwork, ...] = ()
    hosts: tuple[AllowedHost, ...] = ()

    def permits(self, address: Address, port: int, *, host: str | None = None) -> bool:
        """May a connection to `address`, looked up for the name `host`, be opened? Metadata services never."""
        target = effective_address(address)
        if _within(target, METADATA):
            return False
        if _within(target, OPENABLE):
            return any(entry.opens(target, port) for entry in self.networks) or any(
                entry.opens(host, port) for entry in self.hosts
            )
        return _is_public(target)

    def check_url(self, url: str) -> Destination:
        """The destination of `url`, or EgressRefusedError for what no name lookup is needed to refuse."""
        destination = parse_destination(url)
        address = _literal(destination.host)
        if address is not None and not self.permits(address, destination.port, host=destination.host):
            raise EgressRefusedError(_refusal(destination.host))
        return destination


def parse_destination(url: str) -> Destination:
    """Scheme, host and port of an absolute http(s) URL, read by the parser that will also connect."""
    if not _URL_TEXT.fullmatch(url):
        raise EgressRefusedError("a URL must be printable ASCII without spaces")
    try:
        parsed = URL(url, encoded=True)
        port = parsed.port
    except ValueError:
        raise EgressRefusedError("not a well-formed URL") from None
    if parsed.scheme not in ("http", "https"):
        raise EgressRefusedError("only http and https URLs may be called")
    if "@" in parsed.raw_authority:
        raise EgressRefusedError("a URL must not carry a user name or password")
    if not port:
        raise EgressRefusedError(f"the port must be between 1 and {HIGHEST_PORT}")
    return Destination(scheme=parsed.scheme, host=_checked_host(parsed.raw_host or ""), port=port)


def parse_allow(entries: Sequence[str]) -> EgressPolicy:
    """Policy of a tenant's allow-list: "10.1.2.3", "127.0.0.0/8", "127.0.0.1:8090", "[::1]:80", "host.internal"."""
    parsed = [_parse_entry(index, entry) for index, entry in enumerate(entries)]
    return EgressPolicy(
        networks=tuple(entry for entry in parsed if isinstance(entry, AllowedNetwork)),
        hosts=tuple(entry for entry in parsed if isinstance(entry, AllowedHost)),
    )


def effective_address(address: Address) -> Address:
    """The IPv4 address inside an IPv4-mapped, 6to4 or NAT64 address, which is where the packets end up."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_IPV6:
        return False
    return not _within(address, _SPECIAL)


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _checked_host(raw: str) -> str:
    host = raw.lower().removesuffix(".")
    if ":" in host:
        address = _literal(host)
        if address is None or "%" in host:
            raise EgressRefusedError("the host is not an IPv6 address without a zone")
        return host
    last = host.rpartition(".")[2]
    # 2130706433, 0x7f.1 and 0177.0.0.1 are addresses to the C library and names to everybody who reviews them.
    if (last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last)) and _literal(host) is None:
        raise EgressRefusedError("the host is a number but not a dotted-decimal IPv4 address")
    if len(host) > LONGEST_NAME or not _NAME.fullmatch(host):
        raise EgressRefusedError("the host is not a valid name or address")
    return host


def _parse_entry(index: int, entry: str) -> AllowedNetwork | AllowedHost:
    rest, port = _split_port(index, entry)
    try:
        network = ipaddress.ip_network(rest)
    except ValueError as error:
        if re.fullmatch(r"[0-9a-fA-F.:]+/\d+", rest):
            raise AllowListError(index, f"not a network: {error}") from None
        return AllowedHost(name=_entry_name(index, rest), port=port)
    if not any(network[0] in opened and network[-1] in opened for opened in OPENABLE):
        raise AllowListError(
            index, "only private, loopback and shared (100.64.0.0/10) ranges can be opened; public ones need no entry"
        )
    if any(network == ipaddress.ip_network(metadata) for metadata in METADATA):
        raise AllowListError(index, "a metadata service can never be opened")
    return AllowedNetwork(network=network, port=port)


def _split_port(index: int, entry: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?|([^:]+):(\d+)|(.+)", entry)
    if match is None:
        raise AllowListError(index, _ENTRY_FORMS)
    bracketed, bracket_port, plain, plain_port, bare = match.groups()
    port = bracket_port or plain_port
    if port is not None and not 1 <= int(port[:6]) <= HIGHEST_PORT:
        raise AllowListError(index, f"the port must be between 1 and {HIGHEST_PORT}")
    return bracketed or plain or bare or "", int(port) if port else None


def _entry_name(index: int, text: str) -> str:
    try:
        return _checked_host(text)
    except EgressRefusedError as error:
        raise AllowListError(index, f"{error}; {_ENTRY_FORMS}") from None


def _refusal(host: str) -> str:
    return f"{host} is not an allowed destination"


_host: ContextVar[str | None] = ContextVar("egress_host", default=None)


def connecting_to(host: str) -> None:
    """Tell the gates of this task which checked host its next connection is for (names may be allow-listed)."""
    _host.set(host)


@dataclass(frozen=True, slots=True)
class SocketGate:
    """The last gate: aiohttp asks it for a socket to one address, looked up or literal, and connects to that."""

    policy: EgressPolicy

    def __call__(self, info: AddrInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self.policy.permits(ipaddress.ip_address(address[0]), address[1], host=_host.get()):
            raise EgressRefusedError(_refusal(address[0]))
        return socket.socket(family, kind, protocol)


class CheckedResolver(AbstractResolver):
    """Looks a name up once per connection and drops the addresses the policy refuses."""

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answers = await self._inner.resolve(host, port, family)
        permitted = [answer for answer in answers if self._permits(answer)]
        if not answers:
            raise OSError("the name has no address")
        if not permitted:
            raise EgressRefusedError(_refusal(host))
        return permitted

    def _permits(self, answer: ResolveResult) -> bool:
        return self._policy.permits(ipaddress.ip_address(answer["host"]), answer["port"], host=_host.get())

    async def close(self) -> None:
        await self._inner.close()
