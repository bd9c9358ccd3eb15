"""Whose failed sign-ins are counted, with and without proxies."""

import pytest
from django.test import RequestFactory

from config.client_address import client_address


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, "", "10.0.0.1"),
        (0, "6.6.6.6", "10.0.0.1"),  # written by the client itself
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "6.6.6.6, 203.0.113.5", "203.0.113.5"),
        (2, "6.6.6.6, 203.0.113.5, 10.0.0.9", "203.0.113.5"),
        (2, "203.0.113.5", "10.0.0.1"),  # fewer hops than promised: came past a proxy
        (1, "", "10.0.0.1"),
    ],
)
def test_only_what_our_own_proxies_wrote_is_believed(settings, proxies, forwarded, expected):
    settings.BEHIND_PROXY = proxies
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == expected
