"""Optional dependencies: say which extra of the package is missing, what needs it, and how to install it."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec

EXTRA_OF = {
    "psycopg": "server",
    "redis": "server",
    "storages": "s3",
    "sentry_sdk": "sentry",
    "pyarrow": "parquet",
    "pypdfium2": "pdf",
    "typst": "figures",
    "webarena_verified": "webarena",
}
CHECKOUT = {
    "webarena": "Run: config/install.sh parity, and start the web server and the judge workers from the .venv-webarena "
    "that it creates (docs/judges-network-trace.md)."
}


def explain_missing(module: str, purpose: str) -> str:
    """Return "" if ``module`` is installed; otherwise sentences for the person who can install it."""
    if find_spec(module):
        return ""
    return f"{purpose} needs the package {module}, which is not installed. {_describe_remedy(EXTRA_OF[module])}"


def _describe_remedy(extra: str) -> str:
    try:
        origin = json.loads(distribution("webverdict").read_text("direct_url.json") or "{}").get("url", "")
    except PackageNotFoundError:  # a checkout, whose script installs every extra
        return CHECKOUT.get(extra, "Run: config/install.sh run")
    wanted = f"'webverdict[{extra}]{f' @ {origin}' if origin else ''}'"
    return f"Run: pip install {wanted}, or: uvx --from {wanted} webverdict"
