"""Rows as Multimodal-Mind2Web has them, made by the tests: a task of three steps, as JSON Lines or as parquet."""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

ACTIONS = (
    "[searchbox]  Search -> TYPE: O'Brien's lamp",
    "[combobox]  Colour -> SELECT: Dark red",
    "[button]  Add -> HOVER",
)
PAGE = """<html backend_node_id="1"><body backend_node_id="2">
<form backend_node_id="3"><input backend_node_id="10" type="search" placeholder="Search">
<select backend_node_id="11" aria_label="Colour"><option value="r">Dark red</option><option value="b">Blue</option>
</select><button backend_node_id="12"><span>Add</span> to cart</button></form>
<a backend_node_id="13" href="/help">Help</a><a backend_node_id="14" href="/lamps">Lamps</a></body></html>"""
OPERATIONS = (
    {"original_op": "ENTER", "value": "O'Brien's lamp", "op": "TYPE"},
    {"original_op": "SELECT", "value": "Dark red", "op": "SELECT"},
    {"original_op": "HOVER", "value": "", "op": "CLICK"},
)
NODES = ("10", "11", "12")


@cache
def jpeg(width: int = 64, height: int = 48, colour: str = "red") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(stream, "JPEG")
    return stream.getvalue()


def candidate(node: str, tag: str = "button", **more: Any) -> str:
    box = {"backend_node_id": node, "bounding_box_rect": "16,12,32,24"}
    return json.dumps({"tag": tag, "attributes": json.dumps(box), "backend_node_id": node} | more)


def row(index: int = 0, task: str = "task-1", **fields: Any) -> dict[str, Any]:
    """One row: step ``index`` of a task; nested values are JSON texts and the index is a text, as in the data set."""
    usual = {
        "action_uid": f"{task}-{index}",
        "raw_html": "<html>raw</html>",
        "cleaned_html": PAGE,
        "operation": json.dumps(OPERATIONS[index % 3]),
        "pos_candidates": [candidate(NODES[index % 3], is_original_target=True)],
        "neg_candidates": [candidate("13", "a"), candidate("14", "a")],
        "website": "shop",
        "domain": "Shopping",
        "subdomain": "Lighting",
        "annotation_id": task,
        "confirmed_task": f"Put the lamp of O'Brien into the cart ({task})",
        "screenshot": {"bytes": jpeg(), "path": None},
        "action_reprs": list(ACTIONS),
        "target_action_index": str(index),
        "target_action_reprs": ACTIONS[index % 3],
    }
    return usual | fields


def rows(tasks: int = 1, steps: int = 3) -> list[dict[str, Any]]:
    return [row(index, f"task-{number}") for number in range(1, tasks + 1) for index in range(steps)]


def json_lines(path: Path, made: Sequence[Mapping[str, Any] | str]) -> Path:
    """Rows as JSON Lines with pictures in base64; a text stands for a line as it is. ``.gz`` is packed."""
    text = "".join(f"{one if isinstance(one, str) else json.dumps(_plain(one))}\n" for one in made).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def _plain(one: Mapping[str, Any]) -> dict[str, Any]:
    picture = one.get("screenshot")
    if isinstance(picture, dict) and isinstance(picture.get("bytes"), bytes):
        return {**one, "screenshot": base64.b64encode(picture["bytes"]).decode()}
    return dict(one)


def parquet(path: Path, made: Sequence[Mapping[str, Any]], **options: Any) -> Path:
    """Rows as a parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist([dict(one) for one in made]), path, **options)
    return path
