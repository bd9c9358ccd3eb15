"""S3 client settings of the image store, also used by the test against a server."""

from __future__ import annotations

from typing import Any

from botocore.config import Config

BACKEND = "config.store.Store"

# Botocore waits another second for the permission to send a body, and up to a second before a retry. Its option
# `max_attempts` does not count the first attempt.
IMPATIENT = Config(connect_timeout=2, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 2})
PATIENT = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3})


def s3_options(
    *,
    bucket: str,
    endpoint_url: str = "",
    access_key: str = "",
    secret_key: str = "",
    region: str = "",
    in_web_server: bool = False,
) -> dict[str, Any]:
    """Return the OPTIONS of `BACKEND`; empty means not set.

    A web server stops waiting for the store within 7 seconds, because a person waits. A worker waits up to a minute.
    """
    common = Config(
        signature_version="s3v4",
        # Stores other than Amazon's rarely have a host name for each bucket, or the newer checksums.
        s3={"addressing_style": "path" if endpoint_url else "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return {
        "bucket_name": bucket,
        "endpoint_url": endpoint_url or None,
        "access_key": access_key or None,
        "secret_key": secret_key or None,
        "region_name": region or None,
        "default_acl": None,  # the rule of the bucket applies: private
        "file_overwrite": True,  # a name is the hash of its content: writing it twice writes the same bytes
        "querystring_auth": True,
        "max_memory_size": 16 * 1024**2,  # bytes; larger files are buffered on the disk
        "impatient": in_web_server,
        "client_config": (IMPATIENT if in_web_server else PATIENT).merge(common),
    }
