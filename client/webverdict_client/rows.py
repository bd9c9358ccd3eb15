"""Rows of the API as a list, and as a data frame of pandas or polars where these are installed."""

from __future__ import annotations

from typing import Any


class Rows(list[dict[str, Any]]):
    """A list of JSON objects."""

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a column for each key. Raises ImportError without pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: PLC0415 - optional

        return pandas.DataFrame(list(self))

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame` with a column for each key. Raises ImportError without polars."""
        import polars  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - optional

        return polars.DataFrame(list(self), infer_schema_length=None)
