"""How the image store talks to S3: for the settings, and for the test that proves them against a server."""

from __future__ import annotations

from typing import Any

from botocore.config import Config

BACKEND = "storages.backends.s3.S3Storage"


def s3_options(
    *, bucket: str, endpoint_url: str = "", access_key: str = "", secret_key: str = "", region: str = ""
) -> dict[str, Any]:
    """The OPTIONS of `BACKEND`; empty means not set. A store that is gone is noticed after at most three tries."""
    return {
        "bucket_name": bucket,
        "endpoint_url": endpoint_url or None,
        "access_key": access_key or None,
        "secret_key": secret_key or None,
        "region_name": region or None,
        "default_acl": None,  # the bucket's own rule: private
        "file_overwrite": True,  # a name is the hash of its content: writing it twice writes the same bytes
        "querystring_auth": True,
        "client_config": Config(
            connect_timeout=5,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 3},
            signature_version="s3v4",
            # Another store than Amazon's seldom has a host name for each bucket, or its newer checksums.
            s3={"addressing_style": "path" if endpoint_url else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    }
