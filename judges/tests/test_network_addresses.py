"""Two ways to write an address are the same place, and two places are not."""

from __future__ import annotations

import base64
import unicodedata
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judges.scorers.network_trace.addresses import (
    Address,
    UnknownSite,
    expand,
    find_placeholders,
    is_ignored,
    is_same,
    parse_address,
    parse_parameters,
)

PARTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(PARTS, PARTS), max_size=5)
HOSTS = st.sampled_from(["shop.example", "www.shop.example", "bücher.example", "127.0.0.1", "SHOP.example"])
SEGMENTS = st.lists(PARTS.filter(lambda part: part not in {".", ".."}), max_size=4)


def write(address: Address) -> str:
    port = f":{address.port}" if address.port is not None else ""
    path = "/".join(quote(segment, safe="!$&'()*+,;=:@~") for segment in address.segments)
    query = f"?{urlencode(address.parameters)}" if address.parameters else ""
    fragment = f"#{quote(address.fragment)}" if address.fragment else ""
    return f"{address.scheme}:{f'//{address.host}{port}/' if address.host else ''}{path}{query}{fragment}"


@st.composite
def urls(draw):
    """A well-formed address of any letters."""
    path = "/".join(quote(part, safe="") for part in draw(SEGMENTS))
    query = urlencode(draw(PAIRS))
    return f"{draw(st.sampled_from(['http', 'https']))}://{draw(HOSTS)}/{path}{'?' if query else ''}{query}"


@settings(deadline=None)
@given(urls())
def test_the_normal_form_is_its_own_normal_form(url):
    normal = write(parse_address(url))

    assert write(parse_address(normal)) == normal
    assert is_same(url, normal)


@settings(deadline=None)
@given(urls(), st.randoms())
def test_the_order_of_parameters_does_not_matter(url, random):
    plain, _, query = url.partition("?")
    pairs = query.split("&") if query else []
    assert is_same(url, f"{plain}?{'&'.join(random.sample(pairs, len(pairs)))}")


@settings(deadline=None)
@given(urls())
def test_an_address_is_the_same_however_it_is_encoded(url):
    scheme, _, rest = url.partition("://")
    host, _, tail = rest.partition("/")
    path, mark, query = tail.partition("?")
    encoded = "/".join(
        "".join(f"%{byte:02X}" for byte in part.encode()) if "%" not in part else part for part in path.split("/")
    )
    assert is_same(url, f"{scheme.upper()}://{host.upper()}/{encoded}/{mark}{query}")


@settings(deadline=None)
@given(urls(), PARTS)
def test_one_more_parameter_or_segment_is_another_address(url, part):
    plain, mark, query = url.partition("?")
    assert not is_same(url, f"{url}{'&' if mark else '?'}{urlencode({'zz' + part: '1'})}")
    assert not is_same(url, f"{plain.rstrip('/')}/zz{quote(part, safe='')}{mark}{query}")


@settings(deadline=None)
@given(st.text(max_size=60))
def test_nothing_that_a_trace_can_have_raises(text):
    for one in (text, f"http://{text}", f"http://shop.example/{text}", f"data:{text}", f"http://[{text}]/"):
        assert parse_address(write(parse_address(one))).scheme in {parse_address(one).scheme, ""}
        parse_address(one, decode_base64=True)


@settings(deadline=None)
@given(PAIRS)
def test_parameters_are_read_as_they_were_written(pairs):
    composed = [tuple(unicodedata.normalize("NFC", text) for text in pair) for pair in pairs]
    assert parse_parameters(urlencode(pairs)) == composed


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("http://shop.example/a", "http://shop.example:80/A/", True),
        ("http://shop.example/a/../b/./c", "http://shop.example/b/c", True),
        ("http://shop.example/a%2Fb", "http://shop.example/a/b", False),
        ("http://shop.example/%7Euser", "http://shop.example/~user", True),
        ("http://shop.example/a+b", "http://shop.example/a%20b", False),
        ("http://shop.example/?q=a+b", "http://shop.example/?q=a%20b", True),
        ("http://bücher.example/", "http://xn--bcher-kva.example/", True),
        ("http://user:word@shop.example/", "http://shop.example/", True),
        ("http://shop.example/", "http://www.shop.example/", False),
        ("http://shop.example/", "https://shop.example/", False),
        ("http://shop.example/", "http://shop.example:8080/", False),
        ("http://shop.example./", "http://shop.example", True),
        ("http://shop.example/#a", "http://shop.example/", False),
        ("http://shop.example/#a%20b", "http://shop.example/#A b", True),
        ("http://shop.example/?a=", "http://shop.example/", True),
        ("http://shop.example/?a=1&a=2", "http://shop.example/?a=2&a=1", True),
        ("http://shop.example/?a=1&a=2", "http://shop.example/?a=1", False),
        ("http://shop.example/?A=1", "http://shop.example/?a=1", False),
    ],
)
def test_what_is_the_same_and_what_is_not(one, other, equal):
    assert is_same(one, other) is equal
    assert is_same(other, one) is equal


def test_parameters_that_a_path_hides_are_read_where_that_is_asked_for():
    hidden = base64.urlsafe_b64encode(b"user=a&page=2").decode().rstrip("=")
    url = f"http://shop.example/api/{hidden}/data?x=1"

    found = parse_address(url, decode_base64=True)
    assert found.segments == ("api", "data")
    assert found.by_name == {"user": ("a",), "page": ("2",), "x": ("1",)}
    assert parse_address(url).segments == ("api", hidden.casefold(), "data")
    assert parse_address("http://shop.example/abcd/data", decode_base64=True).segments == ("abcd", "data")


def test_a_placeholder_stands_for_every_address_of_its_site():
    sites = {"shop": ("http://a.example/", "http://b.example/shop")}

    assert find_placeholders("__SHOP__/x?to=__MY_SITE__") == ["shop", "my_site"]
    assert expand("__SHOP__/x", sites) == ["http://a.example/x", "http://b.example/shop/x"]
    assert expand("^__SHOP__/x$", sites, pattern=True)[0] == r"^http://a\.example/x$"
    assert expand("http://c.example/__x__", sites) == ["http://c.example/__x__"]
    with pytest.raises(UnknownSite, match="forum"):
        expand("__FORUM__/x", sites)


def test_parameters_are_ignored_by_name_or_by_a_pattern():
    assert is_ignored("page", ["page"], [])
    assert is_ignored("Paging", [], ["^pag"])
    assert not is_ignored("q", ["page"], ["^pag", "^(?!q$).+$"])
