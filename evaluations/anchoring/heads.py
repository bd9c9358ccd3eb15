"""What is published of a chain: its number in it, and nothing that names people, agent or benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from annotation.models.events import instant
from evaluations import signing
from evaluations.verifier.canonical import canonical_json


@dataclass(frozen=True)
class Head:
    """The last event of a submission's chain. ``chain`` is the hash of event 0, by which an outsider knows a chain."""

    submission: int
    chain: str
    sequence: int
    head: str


def statement(head: Head, at: datetime) -> str:
    """The signed line that says that a chain had this head: canonical JSON, the signature over all but itself."""
    key = signing.active_key()
    said = {
        "chain": head.chain,
        "sequence": head.sequence,
        "head": head.head,
        "at": instant(at),
        "key_id": key.key_id,
    }
    signature = signing.signature(key, canonical_json(said).encode())
    return canonical_json({**said, "signature": signature.hex()})
