"""`python -m config.bucket`: create the bucket of S3_BUCKET if it is missing; docker-compose.yml calls it once."""

from __future__ import annotations

import sys
from typing import Any

import django
from botocore.exceptions import ClientError
from django.core.files.storage import storages

NOT_FOUND = {"404", "NoSuchBucket", "NotFound"}


def make_bucket(storage: Any) -> bool:
    """Return True if the bucket was created, False if it existed; other errors are raised."""
    client, name = storage.connection.meta.client, storage.bucket_name
    try:
        client.head_bucket(Bucket=name)
    except ClientError as error:
        if error.response["Error"]["Code"] not in NOT_FOUND:
            raise
        client.create_bucket(Bucket=name)
        return True
    return False


def main() -> int:
    django.setup()
    storage = storages["default"]
    if not hasattr(storage, "bucket_name"):
        sys.stderr.write("S3_BUCKET is not set, so no bucket was created.\n")
        return 1
    word = "was made" if make_bucket(storage) else "is there"
    sys.stdout.write(f"The bucket {storage.bucket_name} {word}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
