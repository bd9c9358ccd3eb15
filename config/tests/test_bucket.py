"""The bucket is made once, and images go through it and back, against an S3 server of this machine."""

import pytest
from django.core.files.base import ContentFile
from django.utils.module_loading import import_string
from moto.server import ThreadedMotoServer

from config.bucket import make_bucket


@pytest.fixture
def endpoint():
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def storage(endpoint):
    return import_string("storages.backends.s3.S3Storage")(
        bucket_name="images", endpoint_url=endpoint, access_key="a", secret_key="b", region_name="us-east-1"
    )


def test_the_bucket_is_made_when_it_is_missing_and_left_alone_when_it_is_there(storage):
    assert make_bucket(storage) is True
    storage.save("kept", ContentFile(b"bytes"))
    assert make_bucket(storage) is False
    with storage.open("kept") as stored:
        assert stored.read() == b"bytes"
