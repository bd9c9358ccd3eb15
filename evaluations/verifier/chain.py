"""Whether the chain of events holds."""

from __future__ import annotations

from collections.abc import Iterator

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.findings import Finding
from evaluations.verifier.rules import TOLERANCE
from evaluations.verifier.wrongs import Wrong, hashed, named, outcome, passed_between

GENESIS = "0" * 64


def chain_claim(bundle: Bundle) -> Finding:
    """Every event has its number, the hash of its content, and the hash of the one before; head and number agree.

    And none is older than one before it: whoever puts events into another order can compute the hashes again.
    """
    wrongs, previous = [], GENESIS
    for number, event in enumerate(bundle.events):
        if event["sequence"] != number:
            wrongs.append(Wrong(f"Event {number} has the number {named(event['sequence'])}.", f"#{number}"))
        if event["previous"] != previous:
            wrongs.append(Wrong(f"Event {number} does not follow the one before it.", f"#{number}"))
        if event["hash"] != hashed({name: value for name, value in event.items() if name != "hash"}):
            wrongs.append(Wrong(f"Event {number} is not what its hash was made over.", f"#{number}"))
        previous = event["hash"]
    good = f"{len(bundle.events)} events, the head is {named(previous[:16])}."
    return outcome("chain", good, [*wrongs, *_older_ones(bundle), *_chain_ends(bundle)])


def _older_ones(bundle: Bundle) -> Iterator[Wrong]:
    """Each is written when the one before it is there, so its time is later but for the clocks of several servers."""
    newest: Document | None = None
    for number, event in enumerate(bundle.events):
        seconds = passed_between((newest or event)["at"], event["at"])
        if newest is not None and seconds is not None and seconds < -TOLERANCE:
            before = f"event {named(newest['sequence'])}, which comes before it in the chain"
            yield Wrong(f"Event {number} is {-seconds:.0f} seconds older than {before}.", f"#{number}")
        elif seconds is not None and seconds >= 0:
            newest = event


def _chain_ends(bundle: Bundle) -> list[Wrong]:
    events, stated = bundle.events, bundle.submission["chain"]
    if not events:
        return [Wrong("There is no event.", "events.jsonl")]
    real = {"id": events[0]["hash"], "events": len(events), "head": events[-1]["hash"]}
    says = {"id": "another first event", "events": "another number of events", "head": "another head"}
    return [
        Wrong(f"submission.json states {says[name]} than events.jsonl has.", "submission.json")
        for name in real
        if stated[name] != real[name]
    ]
