"""Output of the confined process that reads parquet files: JSON, which cannot execute code."""

from __future__ import annotations

import io
import json
import marshal
from typing import Any

import pytest

from annotation.formats.external.multimodal_mind2web import parquet

VALUES: list[Any] = [
    None, True, 3, 2.5, "text \u2028 \ud800", b"\x00\xff", [1, [b"x"]], {"a": {"b": [b"y"]}},
    {"bytes": "no bytes"}, {"object": {"bytes": "x"}}, {},
]  # fmt: skip


def sent(data: bytes) -> io.BytesIO:
    return io.BytesIO(parquet.LENGTH.pack(len(data)) + data)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_value_arrives_as_it_was_sent(value: Any) -> None:
    data = json.dumps(parquet._encode(("row", 7, {"column": value}, []))).encode()

    assert parquet._receive(sent(data)) == ("row", 7, {"column": value}, [])


@pytest.mark.parametrize(
    "data", [marshal.dumps(("end",)), b"", b"{", b"7", b'[{"bytes": 7}]', b'[{"object": 7}]', b"[" * 100_000],
    ids=["marshal", "empty", "cut off", "no list", "no bytes", "no object", "deep"],
)  # fmt: skip
def test_message_of_another_shape_ends_the_reading(data: bytes) -> None:
    with pytest.raises(parquet.ProcessEnded):
        parquet._receive(sent(data))


def test_value_of_a_kind_that_json_lacks_is_unknown() -> None:
    assert not parquet._is_known({"a": [{1, 2}]})
    assert parquet._is_known({"a": [b"x"]})
