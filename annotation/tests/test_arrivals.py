"""Files that arrive, whatever is in them: taken by one worker at a time, followed, and lost to a late one."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from annotation import arrivals
from annotation.models import Benchmark, Upload
from annotation.tests import testing
from annotation.tests.test_concurrency import at_once
from config.tests.waiting import wait_until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def store(tmp_path: Path, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "images"


def waiting() -> Upload:
    return Upload.objects.create(
        uploaded_by=testing.person("mira", is_staff=True),
        benchmark=Benchmark.objects.create(slug="shops", name="Shops"),
        stored_as=default_storage.save("uploads/one", ContentFile(b"bytes")),
    )


def taken() -> Upload:
    found = arrivals.claim(Upload, str(waiting().pk))
    assert found is not None
    return found


def falls_silent(upload: Upload) -> None:
    Upload.objects.filter(pk=upload.pk).update(
        heartbeat_at=timezone.now() - arrivals.HEARTBEAT_TIMEOUT - timedelta(seconds=1)
    )


def test_exactly_one_of_those_who_ask_takes_it() -> None:
    upload = taken()
    assert arrivals.claim(Upload, str(upload.pk)) is None

    falls_silent(upload)
    again = arrivals.claim(Upload, str(upload.pk))
    assert again is not None
    assert (upload.tries, again.tries) == (1, 2)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_at_once_one_takes_it() -> None:
    upload = waiting()

    found = at_once(6, lambda number: arrivals.claim(Upload, str(upload.pk)))

    assert [each for each in found if isinstance(each, Exception)] == []
    assert sum(each is not None for each in found) == 1


@pytest.mark.django_db(transaction=True)
def test_a_worker_reports_while_it_has_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "HEARTBEAT", 0.01)
    upload = taken()
    falls_silent(upload)

    with arrivals.supervise(upload):
        wait_until(lambda: arrivals.find_waiting(Upload) == [], "a heartbeat")


def test_progress_is_written_down_twice_a_second(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    """Of 200 parts, 64 in each half of a second: the first, the 65th, 129th and 193rd, and the last."""
    upload, calls = taken(), count()
    monkeypatch.setattr(arrivals, "monotonic", lambda: next(calls) / 128)
    progress = arrivals.make_progress_saver(upload)

    with django_assert_num_queries(5):
        for number in range(1, 201):
            progress(number, 200)
    upload.refresh_from_db()
    assert (upload.done, upload.total) == (200, 200)
    with django_assert_num_queries(0):
        progress(200, 200)  # said already


@pytest.mark.parametrize("suffix", ["", ".zip"])
def test_what_arrived_is_read_in_its_place_with_the_suffix(suffix: str) -> None:
    upload = taken()

    with arrivals.open_as_file(upload, suffix) as path:
        assert (path.read_bytes(), path.suffix) == (b"bytes", suffix)
        assert path.resolve() == Path(default_storage.path(upload.stored_as)).resolve()
    assert default_storage.exists(upload.stored_as)


def test_who_cancels_knows_of_the_outcome() -> None:
    upload = taken()
    seen = Upload.objects.get()
    arrivals.finish(upload)

    assert not arrivals.cancel(seen)
    assert default_storage.exists(upload.stored_as)
    assert arrivals.cancel(Upload.objects.get())
    assert not default_storage.exists(upload.stored_as)
    assert arrivals.cancel(seen)  # it is gone, as was asked
