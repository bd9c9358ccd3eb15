"""The addresses of all floors together."""

from collections import Counter

from django.urls import URLResolver, get_resolver


def names(patterns):
    for entry in patterns:
        if isinstance(entry, URLResolver):
            if entry.namespace is None:  # the admin's are its own
                yield from names(entry.url_patterns)
        else:
            yield entry.name


def test_no_address_of_one_floor_hides_one_of_another_by_its_name():
    assert [name for name, number in Counter(names(get_resolver().url_patterns)).items() if number > 1] == []
