"""A bucket, for the tests of images and of evidence in one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.files.storage import default_storage

from config import s3
from config.bucket import make_bucket


@pytest.fixture
def server() -> Iterator[Any]:
    """A store that speaks S3, empty."""
    from moto.server import ThreadedMotoServer  # a second that only these tests are to take

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bucket(server: Any, settings: Any) -> Any:
    """The default storage is a new bucket of ``server``, as with S3_BUCKET and its companions in the environment."""
    host, port = server.get_host_and_port()
    options = s3.s3_options(
        bucket=f"images-{uuid.uuid4().hex}",  # all servers of a process share their buckets
        endpoint_url=f"http://{host}:{port}",
        access_key="a",
        secret_key="b",
        region="us-east-1",
    )
    settings.STORAGES = {**django_settings.STORAGES, "default": {"BACKEND": s3.BACKEND, "OPTIONS": options}}
    make_bucket(default_storage)
    return default_storage
