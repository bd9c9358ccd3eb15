"""What import has blanked decides nothing in the compatible mode either, nor in what the package found."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from judges.scorers import webarena
from judges.scorers.network_trace import checks, upstream
from judges.scorers.network_trace.model import NetworkCheck
from judges.tests.network import SHOP, entry, trace

PARTS = ("headers", "query_params", "post_data", "response_content", "response_cookies")


def outcome(check, *entries):
    (one,) = checks.parse(f"- {check}").checks
    assert isinstance(one, NetworkCheck)
    return upstream.run_check(one, trace(*entries), {"shop": (SHOP,)}, "mutate").result


@pytest.mark.parametrize(
    ("check", "path", "expected"),
    [
        ("{url: http://shop.example/reset/abc, should_not_exist: true}", "/reset/[redacted]", "error"),
        ("{url: http://shop.example/reset/abc, should_not_exist: true}", "/set/[redacted]", "pass"),
        ("{url: http://shop.example/reset/abc, should_not_exist: true}", "/reset/abc", "fail"),
        ("{url: http://shop.example/reset/abc}", "/reset/[redacted]", "error"),
        ("{url: '^http://shop.example/reset/abc$', should_not_exist: true}", "/reset/[redacted]", "error"),
    ],
)
def test_a_blanked_path_may_be_the_one_that_is_meant(check, path, expected):
    assert outcome(check, entry(path)) == expected


def test_one_that_is_there_for_certain_outweighs_one_that_may_be():
    check = "{url: http://shop.example/reset/abc, should_not_exist: true}"
    assert outcome(check, entry("/reset/abc"), entry("/reset/[redacted]")) == "fail"


def seen(**parts):
    return SimpleNamespace(**(dict.fromkeys(PARTS) | parts))


@pytest.mark.parametrize(
    ("expected", "actual", "blanked"),
    [
        ({"query_params": {"session": ["am"]}}, {"query_params": {"session": ["[redacted]"]}}, True),
        ({"query_params": {"page": ["1"]}}, {"query_params": {"session": ["[redacted]"]}}, False),
        ({"post_data": {"$.user.session": "am"}}, {"post_data": {"user": {"session": "[redacted]"}}}, True),
        ({"post_data": {"$.user.name": "a"}}, {"post_data": {"user": {"session": "[redacted]", "name": "b"}}}, False),
        ({"post_data": {r"$.^n_\d+$": "a"}}, {"post_data": {"n_1": "[redacted]"}}, True),
        (
            {"headers": {"referer": "x"}, "post_data": {"token": "t"}},
            {"headers": {}, "post_data": {"token": "[redacted]"}},
            True,
        ),
        ({"headers": {"referer": "x"}}, {"headers": {}}, False),
        ({"response_cookies": {"seen": "1"}}, {}, True),
    ],
)
def test_a_failure_of_the_package_on_what_was_blanked_is_told_from_others(expected, actual, blanked):
    assert webarena._is_blanked(seen(**expected), [seen(**actual)]) is blanked
