"""Connection options of PostgreSQL: time-outs for an unreachable server, and no compilation of queries."""

from __future__ import annotations

from typing import Any

import dj_database_url

# libpq, in seconds; tcp_user_timeout in milliseconds. They detect an unreachable machine within 30 s.
NETWORK = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# Compilation takes longer than our queries: the states of 3,000 trajectories took 1.03 s with it, 0.05 s without.
WITHOUT_JIT = "-c jit=off"
STATEMENT_SECONDS = 60  # of a web server, because a person waits; workers may take longer


def settings_from(url: str, *, in_web_server: bool) -> dict[str, Any]:
    """Return the settings of the database at ``url``; options in its query string take precedence."""
    found: dict[str, Any] = dict(dj_database_url.parse(url, conn_max_age=60, conn_health_checks=True))
    if not found["ENGINE"].endswith("postgresql"):
        return found
    given = found.get("OPTIONS", {})
    ours = f"{WITHOUT_JIT} -c statement_timeout={STATEMENT_SECONDS}s" if in_web_server else WITHOUT_JIT
    # PostgreSQL uses the last of two values of one parameter.
    found["OPTIONS"] = NETWORK | given | {"options": f"{ours} {given.get('options', '')}".strip()}
    return found
