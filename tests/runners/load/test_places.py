"""Load goes to addresses that may be loaded, whatever the host is called."""

from __future__ import annotations

import asyncio
import re
import socket

import pytest

from records.errors import HostNotAllowed
from runners.load.attempt import Broken
from runners.load.places import addresses, literal_addresses, refusal

NEVER = {
    "169.254.169.254": "metadata",
    "169.254.170.2": "metadata",
    "100.100.100.200": "metadata",
    "fd00:ec2::254": "metadata",
    "fd20:ce::254": "metadata",
    "169.254.0.1": "link-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "255.255.255.255": "broadcast",
    # 169.254.169.254 is a9fe:a9fe: mapped, compatible, translated, NAT64 twice, 6to4.
    "::ffff:169.254.169.254": "metadata",
    "::a9fe:a9fe": "metadata",
    "::ffff:0:a9fe:a9fe": "metadata",
    "64:ff9b::a9fe:a9fe": "metadata",
    "64:ff9b:1::a9fe:a9fe": "metadata",
    "2002:a9fe:a9fe::1": "metadata",
    # Teredo: the client's address inverted, a9fe ^ ffff = 5601.
    "2001:0:808:808::5601:5601": "metadata",
    "::ffff:0.0.0.0": "unspecified",
    "fd00:ec2::254%1": "metadata",
}
PRIVATE = (
    "127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1",
    "fd12::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:a00:1::", "192.0.2.1",
    "198.18.0.1", "240.0.0.1", "2001:db8::1", "64:ff9b:1::808:808",
)  # fmt: skip
PUBLIC = ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1")


@pytest.mark.parametrize(("ip", "reason"), NEVER.items())
@pytest.mark.parametrize("allow_private", [True, False])
def test_some_addresses_are_refused_everywhere(ip, reason, allow_private):
    assert reason in refusal(ip, allow_private)


@pytest.mark.parametrize("ip", PRIVATE)
def test_private_ranges_need_permission(ip):
    assert refusal(ip, allow_private=True) is None
    assert "not allowed here" in refusal(ip, allow_private=False)


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_are_fine(ip):
    assert refusal(ip, allow_private=False) is None


def resolved(host, allow_private=True):
    return asyncio.run(addresses(host, 80, allow_private=allow_private))


SPELLINGS = (
    "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0xa9.254.43518",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_odd_spellings_are_what_the_resolver_makes_of_them(spelling):
    assert literal_addresses(spelling) == ["169.254.169.254"]
    with pytest.raises(HostNotAllowed, match=r"\(169\.254\.169\.254\): the metadata service"):
        resolved(spelling)


def test_loopback_is_there_for_the_terminal_only():
    assert [(a.family, a.ip, a.sockaddr[1]) for a in resolved("127.1")] == [
        (socket.AF_INET, "127.0.0.1", 80)
    ]
    with pytest.raises(HostNotAllowed, match="loopback") as refused:
        resolved("127.0.0.1", allow_private=False)
    assert refused.value.exit_code == 2


def test_one_refused_address_refuses_the_name_and_the_order_is_the_resolvers(monkeypatch):
    answer = ["8.8.8.8", "8.8.4.4", "8.8.8.8"]

    async def getaddrinfo(self, host, port, **_options):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in answer]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)
    assert [a.ip for a in resolved("llm.example")] == ["8.8.8.8", "8.8.4.4"]
    answer.append("169.254.169.254")
    with pytest.raises(HostNotAllowed, match=r"llm\.example \(169\.254\.169\.254\): the metadata"):
        resolved("llm.example")


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300, "a\0b"])
def test_a_name_that_is_not_known_says_so(host):
    with pytest.raises(Broken, match="host name is not known") as unknown:
        resolved(host)
    assert unknown.value.kind == "dns"


def test_names_spell_no_address_but_localhost():
    assert literal_addresses("llm.example") == []
    assert literal_addresses("a..b") == []
    assert literal_addresses("LocalHost.") == ["127.0.0.1"]
    assert literal_addresses("x.localhost") == ["127.0.0.1"]
    assert literal_addresses("::1") == ["::1"]


@pytest.mark.parametrize(
    ("host", "ip"),
    [
        ("169.254.169.254.", "169.254.169.254"),
        ("2852039166.", "169.254.169.254"),
        ("fe80::1%25eth0", "fe80::1"),
        ("fe80::1%no-such-link", "fe80::1"),
        ("Metadata.Google.Internal.", "169.254.169.254"),
        ("metadata.goog", "169.254.169.254"),
    ],
)
def test_a_dot_or_a_link_at_the_end_hides_no_address(host, ip):
    """Without asking a name server: a proxy or a later look-up would."""
    assert literal_addresses(host) == [ip]
    with pytest.raises(HostNotAllowed, match=re.escape(ip)):
        resolved(host)
