"""The demo data: recordings of agents on two demo sites, labels and logins. `tools/demo` made the recordings."""

from pathlib import Path

DATA = Path(__file__).parent / "data"

# Logins for a first look on one's own machine; load_demo refuses to make them in the production profile.
PASSWORD = "webverdict-demo"  # noqa: S105
LOGINS = (
    ("alice", PASSWORD, "annotator"),
    ("bob", PASSWORD, "annotator"),
    ("chen", PASSWORD, "annotator"),
    ("carol", PASSWORD, "QA adjudicator"),
    ("mira", PASSWORD, "maintainer"),
)
