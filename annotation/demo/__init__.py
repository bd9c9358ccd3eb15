"""The demo data: recordings of agents on two demo sites, labels and logins. `tools/demo` created the recordings."""

from pathlib import Path

DATA = Path(__file__).parent / "data"

# Logins for trying the application locally; load_demo refuses to create them in the production profile.
PASSWORD = "webverdict-demo"  # noqa: S105
LOGINS = (
    ("alice", PASSWORD, "annotator"),
    ("bob", PASSWORD, "annotator"),
    ("chen", PASSWORD, "annotator"),
    ("carol", PASSWORD, "adjudicator"),
    ("mira", PASSWORD, "maintainer"),
)
