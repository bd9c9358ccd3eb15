"""Croissant 1.0 metadata of a dataset: its files with digests, and the columns of its tables.

Source: http://mlcommons.org/croissant/1.0. schemas/croissant-1.0.schema.json has the required properties.
"""

from __future__ import annotations

import json
from typing import Any

from evaluations.publication.tables import IMAGE, SCALARS, Table, Type
from evaluations.verifier.documents import Document

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
PARQUET = "application/x-parquet"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataBiases": "cr:dataBiases",
    "dataCollection": "cr:dataCollection",
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "personalSensitiveInformation": "cr:personalSensitiveInformation",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def build(about: Document, files: dict[str, tuple[int, str]], tables: list[Table]) -> bytes:
    """Return the JSON-LD. ``about`` has the properties of the dataset; ``files`` are size and SHA-256 by path."""
    metadata = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        **about,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": table.path,
                "name": table.path,
                "description": table.description,
                "contentUrl": table.path,
                "contentSize": f"{files[table.path][0]} B",
                "encodingFormat": PARQUET,
                "sha256": files[table.path][1],
            }
            for table in tables
        ],
        "recordSet": [_record_set(table) for table in tables],
    }
    return json.dumps(metadata, ensure_ascii=False, indent=2).encode() + b"\n"


def _record_set(table: Table) -> Document:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.description,
        "field": [
            _field(table, f"{table.name}/{name}", kind, name, []) | {"description": says}
            for name, (kind, says) in table.columns.items()
        ],
    }


def _field(table: Table, place: str, kind: Type, column: str, inside: list[str]) -> Document:
    """Return the field of a column, or of a part of one at the JSON path ``inside``."""
    if isinstance(kind, list):
        return _field(table, place, kind[0], column, inside) | {"repeated": True}
    field: Document = {"@type": "cr:Field", "@id": place, "name": place}
    if isinstance(kind, dict):
        parts = kind.items()
        return field | {"subField": [_field(table, f"{place}/{n}", each, column, [*inside, n]) for n, each in parts]}
    source: dict[str, Any] = {"fileObject": {"@id": table.path}, "extract": {"column": column}}
    path = ["bytes"] if kind == IMAGE else inside
    if path:
        source["transform"] = {"jsonPath": ".".join(path)}
    return field | {"dataType": "sc:ImageObject" if kind == IMAGE else SCALARS[kind], "source": source}
