"""Read zips whose members are Zstandard (zip method 93), which `zipfile` cannot before Python 3.14.

The optional package pyarrow unpacks them, in parts: memory contains a chunk and the window, which zstd limits to 128
MiB. Sizes and checksums of the directory are checked.
"""

from __future__ import annotations

import copy
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

from annotation.extras import explain_missing
from annotation.formats.archive import Limits, ZipPackage

ZSTANDARD = 93
LIMITS = Limits(ratio=1_000)  # repeated messages are packed well; the limit of bytes still holds


class ZstandardZip(ZipPackage):
    """A zip of which the last of several members of one name counts, as for its writers, which append.

    ``missing`` says which package must be installed to read it; "" if none.
    """

    def __init__(self, path: Path) -> None:
        self.missing = ""
        super().__init__(path, LIMITS)

    def _add(self, name: str, size: int) -> None:
        self._sizes.pop(name, None)
        super()._add(name, size)

    def _check_member(self, name: str, member: zipfile.ZipInfo) -> None:
        if member.compress_type != ZSTANDARD:
            super()._check_member(name, member)
            return
        self.missing = self.missing or explain_missing("pyarrow", "Reading a zip with Zstandard")
        stored = copy.copy(member)
        stored.compress_type = zipfile.ZIP_STORED
        super()._check_member(name, stored)

    def _open(self, name: str) -> IO[bytes]:
        member = self._members[name]
        if member.compress_type != ZSTANDARD:
            return super()._open(name)
        packed = copy.copy(member)
        packed.compress_type, packed.file_size = zipfile.ZIP_STORED, member.compress_size
        packed.CRC = None  # type: ignore[assignment] # that of the directory is of the unpacked bytes
        return _Unpacked(self._zip.open(packed), member)  # type: ignore[return-value]


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a member. Reading raises OSError if they are not those of the directory."""

    def __init__(self, packed: IO[bytes], member: zipfile.ZipInfo) -> None:
        from pyarrow import CompressedInputStream  # noqa: PLC0415 - slow, and optional

        self._packed = packed
        self._stream: Any = CompressedInputStream(packed, "zstd")
        self._left, self._crc, self._expected = member.file_size, 0, member.CRC

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._stream.read(size)
        self._left -= len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self._left < 0 or (not data and (self._left or self._crc != self._expected)):
            raise OSError("size or checksum differ from those in the directory of the zip")
        return data

    def close(self) -> None:
        self._packed.close()
        super().close()
