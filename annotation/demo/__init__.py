"""A shop and a booking site of our own, two agents that used them, and what people said about it."""

# Logins for a first look on one's own machine; load_demo refuses to make them in the production profile.
PASSWORD = "webverdict-demo"  # noqa: S105
LOGINS = (
    ("alice", PASSWORD, "annotator"),
    ("bob", PASSWORD, "annotator"),
    ("chen", PASSWORD, "annotator"),
    ("carol", PASSWORD, "QA adjudicator"),
    ("mira", PASSWORD, "maintainer"),
)
