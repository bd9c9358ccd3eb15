"""A resolver for the tests of live capture, which ask no real one."""

from __future__ import annotations

import socket
from typing import Any

PUBLIC = "93.184.215.14"


def names(**known: str) -> Any:
    """A resolver that knows these hosts, by their first label, and no others."""

    def resolve(host: str, port: int) -> list[str]:
        found = known.get(host.split(".", maxsplit=1)[0])
        if found is None:
            raise socket.gaierror(-2, "Name or service not known")
        return found.split()

    return resolve
