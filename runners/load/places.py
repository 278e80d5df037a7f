"""Which addresses load may go to, decided by what a name resolves to, once per run.

A host is judged by its addresses, never by its spelling: 2852039166, 0xa9.254.43518 and a
name of somebody's zone can all be the metadata service of a cloud. One refused address in
the answer refuses the name, since who controls the name chooses which one is used. Callers
connect to the addresses returned and never ask again, so that an answer cannot change
between the check and the connection.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Any, NamedTuple

from records.errors import HostNotAllowed
from runners.load.attempt import Broken

IpAddress = IPv4Address | IPv6Address

# Where clouds hand out credentials to whoever asks. Most of them are link-local.
_METADATA = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",  # AWS, Google, Azure, OpenStack, DigitalOcean, Oracle
            "169.254.170.2",  # tasks of AWS ECS
            "169.254.170.23",  # pods of AWS EKS
            "fd00:ec2::254",  # AWS
            "fd00:ec2::23",  # pods of AWS EKS
            "fd20:ce::254",  # Google
            "fd00:42::42",  # Scaleway
            "100.100.100.200",  # Alibaba
            "168.63.129.16",  # Azure's wire server
            "192.0.0.192",  # Oracle, first form
        ),
    )
)
_METADATA_NAMES = (
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata.tencentyun.com",
)
_THIS_NETWORK = IPv4Network("0.0.0.0/8")
# Forms of IPv6 addresses that carry an IPv4 address, and the bits to its right.
_EMBEDDING = (
    (IPv6Network("::/96"), 0),  # IPv4-compatible
    (IPv6Network("::ffff:0:0/96"), 0),  # IPv4-mapped
    (IPv6Network("::ffff:0:0:0/96"), 0),  # IPv4-translated
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64
    (IPv6Network("64:ff9b:1::/48"), 0),  # NAT64 of a site, its prefix 96 bits long
    (IPv6Network("2002::/16"), 80),  # 6to4
)
# Not reachable from elsewhere, and not marked so by `is_global` in every Python we run on.
_PRIVATE = tuple(ip_network(net) for net in ("100.64.0.0/10", "fec0::/10", "64:ff9b:1::/48"))


class Address(NamedTuple):
    """One place to connect to: what `socket.socket` and `connect` take."""

    family: int
    sockaddr: tuple[Any, ...]

    @property
    def ip(self) -> str:
        """The address as digits, with its scope when it has one."""
        return str(self.sockaddr[0])


def refusal(ip: str | IpAddress, allow_private: bool) -> str | None:
    """Why no load is sent to an address, as words to follow it; None when it may be.

    `allow_private` False also refuses what is not reachable from the whole
    internet: private, shared, loopback, documentation and reserved ranges.
    """
    address = ip_address(ip) if isinstance(ip, str) else ip
    ours = (address, *_embedded(address))
    never = [_never(one) for one in ours]
    closed = [] if allow_private else [_not_public(one) for one in ours]
    return next((reason for reason in never + closed if reason is not None), None)


def _never(address: IpAddress) -> str | None:
    plain = IPv6Address(int(address)) if address.version == 6 else address
    if plain in _METADATA:
        return "the metadata service of a cloud"
    if plain.is_link_local:
        return "a link-local address"
    if plain.is_unspecified or (plain.version == 4 and plain in _THIS_NETWORK):
        return "an unspecified address"
    if plain.is_multicast:
        return "a multicast address"
    if plain == IPv4Address("255.255.255.255"):
        return "the broadcast address"
    return None


def _not_public(address: IpAddress) -> str | None:
    if address.is_loopback:
        return "a loopback address, which is not allowed here"
    in_range = any(address.version == net.version and address in net for net in _PRIVATE)
    if in_range or not (address.is_global or list(_embedded(address))):
        return "an address of a private or reserved range, which is not allowed here"
    return None


def _embedded(address: IpAddress) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address stands for; none for ::1 and ::."""
    if not isinstance(address, IPv6Address) or int(address) <= 1:
        return
    for net, right in _EMBEDDING:
        if address in net:
            yield IPv4Address(int(address) >> right & 0xFFFFFFFF)
    if address.teredo is not None:
        yield from address.teredo


async def addresses(host: str, port: int, *, allow_private: bool) -> list[Address]:
    """Where a host may be reached, in the resolver's order, each address once.

    HostNotAllowed when any of them is refused; Broken of kind "dns" when the
    name is not known.
    """
    for ip in literal_addresses(host):
        check(host, ip, allow_private=allow_private)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise Broken("dns", f"the host name is not known ({said})") from error
    places = list(dict.fromkeys(Address(int(row[0]), tuple(row[4])) for row in found))
    for place in places:
        check(host, place.ip, allow_private=allow_private)
    return places


def check(host: str, ip: str, *, allow_private: bool) -> None:
    """HostNotAllowed, naming host, address and reason, when no load may go to `ip`."""
    reason = refusal(ip, allow_private)
    if reason is not None:
        which = ip if host == ip else f"{host} ({ip})"
        raise HostNotAllowed(f"no load is sent to {which}: {reason}")


def literal_addresses(host: str) -> list[str]:
    """The addresses that a host spells itself, in any spelling, without asking a name server.

    Empty for a name, but for those that stand for one place everywhere: `localhost` with
    the names below it, and what clouds call their metadata service.
    """
    # Names end in a dot, and a link's name comes after %; of both an address is the same.
    name = host.partition("%")[0].rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return ["127.0.0.1"]
    if name in _METADATA_NAMES:
        return ["169.254.169.254"]
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError, ValueError):
        return []
    return [str(row[4][0]) for row in found]
