"""ro-crate-metadata.json: the files of a bundle for machines (RO-Crate 1.1, https://w3id.org/ro/crate/1.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evaluations.verifier.documents import Bundle, Document
from evaluations.verifier.parts import CRATE, MANIFEST, SIGNATURE, VERIFIER, media_type, part_of

CRATE_CONTEXT = ["https://w3id.org/ro/crate/1.1/context", {"sha256": "https://schema.org/sha256"}]

Listed = tuple[str, str, int]  # path, SHA-256, size in bytes


def crate(bundle: Bundle, files: Iterable[Listed]) -> Document:
    """The metadata; ``files`` are all but itself, manifest and signature.

    The manifest lists this file with its digest, so neither manifest nor signature has a size or digest here.
    """
    submission = bundle.submission
    last = bundle.events[-1]["at"] if bundle.events else submission["created_at"]
    described = [_crate_file(*listed) for listed in sorted(files)]
    described += [{"@id": path, "@type": "File", "encodingFormat": media_type(path)} for path in (MANIFEST, SIGNATURE)]
    name = f"{submission['agent']} on {submission['benchmark_name']}"
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Evidence of {name}",
        "description": f"How {submission['trajectories']} trajectories of {submission['agent']} were judged by people: "
        "labels, adjudications, spot checks, the chain of events, and a program that checks them.",
        "datePublished": submission["frozen_at"] or last,
        "identifier": submission["chain"]["head"],
        "license": {"@id": "#license"},
        "about": [{"@id": "#agent"}, {"@id": "#benchmark"}],
        "hasPart": [{"@id": each["@id"]} for each in described],
    }
    itself = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    return {"@context": CRATE_CONTEXT, "@graph": [itself, root, *_crate_entities(submission), *described]}


def _crate_entities(submission: Document) -> list[Document]:
    license_ = {
        "@id": "#license",
        "@type": "CreativeWork",
        "name": "See the benchmark",
        "description": "Tasks and their use are under the terms of the benchmark, all else under those of the maker.",
    }
    agent = {"@id": "#agent", "@type": "SoftwareApplication", "name": submission["agent"]}
    benchmark = {"@id": "#benchmark", "@type": "CreativeWork", "name": submission["benchmark_name"]}
    return [license_, agent, benchmark | {"identifier": submission["benchmark"]}]


def _crate_file(path: str, sha256: str, size: int) -> Document:
    found: dict[str, Any] = {
        "@id": path,
        "@type": "File",
        "name": path.rpartition("/")[2],
        "description": part_of(path).says,
        "contentSize": str(size),
        "encodingFormat": media_type(path),
        "sha256": sha256,
    }
    if path == VERIFIER:
        found |= {"@type": ["File", "SoftwareSourceCode"], "programmingLanguage": "Python"}
    return found
