"""Reading a large file from the store takes disk, not memory."""

import os
import subprocess
import sys

import pytest
from django.conf import settings

MIB = 1024**2
# Prints by how many bytes the most memory of the process grows while it reads the file as the worker does.
READING = """
import re, sys, django
from pathlib import Path
django.setup()
from django.core.files.storage import default_storage
# Not getrusage, whose maximum includes the process that started this one.
most = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
default_storage.exists("nothing")  # the client is loaded before it is measured
before = most()
with default_storage.open(sys.argv[1]) as source:
    size = sum(len(chunk) for chunk in source.chunks())
assert size == int(sys.argv[2]), size
print(most() - before)
"""


def growth(bucket, size):
    bucket.bucket.put_object(Key="large", Body=bytes(size))  # at once: the parts of a large file cost moto minutes
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "S3_BUCKET": bucket.bucket_name,
        "S3_ENDPOINT_URL": bucket.endpoint_url,
        "S3_ACCESS_KEY": "a",
        "S3_SECRET_KEY": "b",
        "S3_REGION": "us-east-1",
    }
    command = [sys.executable, "-c", READING, "large", str(size)]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="the most memory of a process is in /proc, which is Linux")
def test_memory_of_a_worker_does_not_grow_with_the_size_of_an_upload(bucket):
    # 16 MiB stay in memory, and boto reads ahead in parallel.
    assert growth(bucket, 192 * MIB) < 128 * MIB
