"""The fake endpoint for every test of judges."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judges.testing import Fake, fake_endpoint


@pytest.fixture(scope="session")
def fake_process() -> Iterator[Fake]:
    with fake_endpoint() as fake:
        yield fake


@pytest.fixture
def fake(fake_process: Fake) -> Fake:
    """A fake endpoint without rules and counts."""
    fake_process.reset()
    return fake_process
