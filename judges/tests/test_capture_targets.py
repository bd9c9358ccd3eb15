"""Which addresses live capture opens: none of a private network, however it is written."""

from __future__ import annotations

import ipaddress

import pytest

from annotation.web_targets import TargetRefused, check_target, is_public
from judges.tests.resolving import PUBLIC, names


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://127.0.0.256/",
        "http://10.1.2.3/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://255.255.255.255/",
        "http://224.0.0.1/",
        "http://240.0.0.1/",
        "http://192.0.2.1/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fe80::1%25eth0]/",
        "http://[fc00::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://[fd00:ec2::254]/",
        "http://localhost/",
        "http://inside.example/",
        "http://mixed.example/",
        "http://six.example/",
        "http://mapped.example/",
        "http://nobody.example/",
        "http://１２７.０.０.１/",
        "http://①②⑦.⓪.⓪.①/",
        "ftp://shop.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "//shop.example/",
        "shop.example",
        "",
        "http://",
        "http:///x",
        "http://user:password@shop.example/",
        "http://shop.example:22/",
        "http://shop.example:6379/",
        "http://shop.example:99999/",
        "http://shop.example:x/",
        "http://shop.example\\@127.0.0.1/",
        "http://shop.example/\r\nHost: inside",
        "http://shop.example/ x",
        "http://" + "a" * 9_000,
        "http://[::1",
    ],
)
def test_what_is_not_public_is_refused(url):
    resolve = names(
        shop=PUBLIC,
        localhost="127.0.0.1",
        inside="10.0.0.5",
        mixed=f"{PUBLIC} 127.0.0.1",
        six="::1",
        mapped="::ffff:10.0.0.1",
    )
    with pytest.raises(TargetRefused):
        check_target(url, resolve)


@pytest.mark.parametrize(
    ("url", "host", "port", "ip", "path"),
    [
        ("http://shop.example", "shop.example", 80, PUBLIC, "/"),
        ("HTTPS://Shop.Example./a?b=c#d", "shop.example", 443, PUBLIC, "/a?b=c"),
        ("http://shop.example:8080/ä", "shop.example", 8080, PUBLIC, "/%C3%A4"),
        (f"http://{PUBLIC}/%20", PUBLIC, 80, PUBLIC, "/%20"),
        ("http://[2606:4700::1111]/", "2606:4700::1111", 80, "2606:4700::1111", "/"),
        ("http://shöp.example/", "xn--shp-tna.example", 80, PUBLIC, "/"),
        ("http://1shop.example/", "1shop.example", 80, PUBLIC, "/"),
    ],
)
def test_what_is_public_is_opened_at_the_checked_address(url, host, port, ip, path):
    resolve = names(**{"shop": PUBLIC, "xn--shp-tna": PUBLIC, "1shop": PUBLIC})

    target = check_target(url, resolve)

    assert (target.host, target.port, target.ip, target.path) == (host, port, ip, path)


def test_no_address_within_a_private_network_is_public():
    for network in (
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",
        "fe80::/10",
    ):
        found = ipaddress.ip_network(network)
        for address in (found.network_address, found.broadcast_address, found[12345]):
            assert not is_public(address)
            if address.version == 4:
                assert not is_public(ipaddress.ip_address(f"::ffff:{address}"))


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "017700000001", "127.1", "0x5d.0xb8.0xd7.0xe", "a.b.1"])
def test_a_host_that_is_written_as_a_number_is_refused_whatever_it_resolves_to(host):
    with pytest.raises(TargetRefused, match="usual notation"):
        check_target(f"http://{host}/", lambda host, port: [PUBLIC])


@pytest.mark.parametrize("host", ["a,exclude\u00a0*,b.evil.example", "a*b.example", "a'b.example", "a;b.example"])
def test_a_host_that_would_mean_more_to_a_browser_is_refused(host):
    with pytest.raises(TargetRefused, match="invalid characters"):
        check_target(f"http://{host}/", lambda host, port: [PUBLIC])


@pytest.mark.parametrize("address", [f"::ffff:{PUBLIC}", f"64:ff9b::{PUBLIC}", "2606:4700::1111", PUBLIC])
def test_a_public_address_is_public_in_every_form(address):
    assert is_public(ipaddress.ip_address(address))
