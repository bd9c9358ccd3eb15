"""Opening packages: what is no safe zip is refused in one line, and nothing is read that was not declared."""

from __future__ import annotations

import io
import stat
import struct
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluations.tests.raw_zip import Entry, raw_zip
from evaluations.verifier import package as packages
from evaluations.verifier.package import open_package
from evaluations.verifier.values import Refused

MIB = 1 << 20
WRITES_ZIP64 = pytest.mark.skipif(
    sys.version_info < (3, 11, 4), reason="zipfile wrote wrong headers with force_zip64 (CPython issue 103861)"
)


def read_all(path: Path) -> dict[str, bytes]:
    with open_package(str(path)) as package:
        return {name: package.read(name) for name in package.names()}


@pytest.fixture
def refusal(tmp_path: Path) -> Callable[[bytes], str]:
    """What is said of a file with these bytes, opened and read to its end."""

    def refused(data: bytes) -> str:
        path = tmp_path / "bundle.zip"
        path.write_bytes(data)
        with pytest.raises(Refused) as error:
            read_all(path)
        says = str(error.value)
        assert says.isascii()
        assert says.isprintable()
        return says

    return refused


def test_what_an_ordinary_program_packs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("screenshots")
        archive.writestr("a.json", "{}")
        archive.writestr("screenshots/b", b"x" * 100_000)
    assert read_all(path) == {"a.json": b"{}", "screenshots/b": b"x" * 100_000}


@pytest.mark.parametrize("zip64", [False, pytest.param(True, marks=WRITES_ZIP64)])
def test_what_was_packed_into_a_pipe_is_read(tmp_path: Path, zip64: bool) -> None:
    """Sizes are unknown then until an entry is over: they come behind it."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.parts: list[bytes] = []

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            self.parts.append(bytes(data))  # type: ignore[call-overload]
            return len(self.parts[-1])

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name in ("a", "b"):
            with archive.open(name, "w", force_zip64=zip64 and name == "b") as entry:
                entry.write(b"hello")
    path = tmp_path / "b.zip"
    path.write_bytes(b"".join(pipe.parts))
    assert read_all(path) == {"a": b"hello", "b": b"hello"}


def test_two_files_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(raw_zip(Entry(b"a", b"a" * 200_000), Entry(b"b", b"b" * 200_000, method=8)))
    with open_package(str(path)) as package:
        pairs = list(zip(package.stream("a"), package.stream("b"), strict=False))
    assert {(left[:1], right[:1]) for left, right in pairs} == {(b"a", b"b")}


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04" + b"\0" * 200, raw_zip(Entry(b"a"))[:-5]])
def test_what_is_no_zip_is_refused(data: bytes, refusal: Callable[[bytes], str]) -> None:
    assert "not a zip file" in refusal(data)


@pytest.mark.parametrize(
    "name",
    [b"", b"/etc/passwd", b"../a", b"a/../b", b"a/./b", b"a//b", b"..", b"a\\b", b"C:a", b"c:/a"],
)
def test_a_name_that_leaves_the_package_is_refused(name: bytes, refusal: Callable[[bytes], str]) -> None:
    says = refusal(raw_zip(Entry(name)))
    assert "plain path inside the package" in says
    assert says.startswith(name.decode().replace("\\", "\\\\") or "A file without a name")


@pytest.mark.parametrize("name", [b"a\0b", b"a\nb", b"a\x1b[31m", b"a\x7f", "a\u202eb".encode(), "a\u200bb".encode()])
def test_a_name_that_cannot_be_shown_is_refused(name: bytes, refusal: Callable[[bytes], str]) -> None:
    assert "cannot be displayed" in refusal(raw_zip(Entry(name, flags=0x800)))


@pytest.mark.parametrize("name", ["re\u0301sume\u0301", "r\u00e9sum\u00e9", "\U0001fae8", "\u212a"], ids=ascii)
def test_a_name_with_other_letters_than_those_of_ascii_is_refused(
    name: str, tmp_path: Path, refusal: Callable[[bytes], str]
) -> None:
    """Which of them are the same name, and which a zip without a mark means, depends on the program that reads it."""
    assert "has non-ASCII letters" in refusal(raw_zip(Entry(name.encode(), flags=0x800)))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).write_text("")
    with pytest.raises(Refused, match="has non-ASCII letters"):
        read_all(tmp_path / "folder")


def test_a_name_that_is_no_utf_8_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "not a name in UTF-8" in refusal(raw_zip(Entry(b"a\xff", flags=0x800)))
    assert "not a name in UTF-8" in refusal(raw_zip(Entry(b"a\xff")))


def test_an_endless_name_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "characters; shorten it" in refusal(raw_zip(Entry(b"a" * 600)))
    assert "is nested too deeply" in refusal(raw_zip(Entry(b"a/" * 9 + b"a")))


def test_a_name_that_is_there_twice_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "a occurs twice in the zip" in refusal(raw_zip(Entry(b"a", b"1"), Entry(b"a", b"2")))


def test_two_entries_of_the_directory_for_one_file_are_refused(refusal: Callable[[bytes], str]) -> None:
    assert "overlaps" in refusal(raw_zip(Entry(b"a"), Entry(b"b", offset=0)))


def test_names_that_differ_only_by_case_are_refused(refusal: Callable[[bytes], str]) -> None:
    assert "differ only by case" in refusal(raw_zip(Entry(b"a/B"), Entry(b"A/b")))


def test_a_file_that_is_a_folder_too_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "file and a folder at once" in refusal(raw_zip(Entry(b"a"), Entry(b"A/b")))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_special_files_are_refused(kind: int, refusal: Callable[[bytes], str]) -> None:
    assert "symbolic link or a special file" in refusal(raw_zip(Entry(b"a", mode=kind | 0o777)))


def test_a_folder_with_content_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "folder with content" in refusal(raw_zip(Entry(b"a/", b"hidden")))


@pytest.mark.parametrize("flag", [0x1, 0x41, 0x2000])
def test_an_encrypted_entry_is_refused(flag: int, refusal: Callable[[bytes], str]) -> None:
    assert "a is encrypted; create the zip without a password" in refusal(raw_zip(Entry(b"a", flags=flag)))


@pytest.mark.parametrize("method", [1, 9, 12, 14, 93, 99])
def test_another_compression_is_refused(method: int, refusal: Callable[[bytes], str]) -> None:
    assert f"packed by method {method}" in refusal(raw_zip(Entry(b"a", method=method)))


def test_more_bytes_than_declared_are_refused(refusal: Callable[[bytes], str]) -> None:
    small = {"size": 10}
    lying = Entry(b"a", b"x" * 1000, method=8, local=small, central=small)
    assert "holds more than the 10 bytes" in refusal(raw_zip(lying))


def test_fewer_bytes_than_declared_are_refused(refusal: Callable[[bytes], str]) -> None:
    large = {"size": 2000}
    lying = Entry(b"a", b"x" * 1000, method=8, local=large, central=large)
    assert "holds 1,000 bytes; the zip declares 2,000" in refusal(raw_zip(lying))


def test_a_stored_entry_with_two_sizes_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "two sizes" in refusal(raw_zip(Entry(b"a", b"xx", local={"size": 1}, central={"size": 1})))


@pytest.mark.parametrize("said", [{"name": b"b"}, {"method": 8}, {"flags": 8}])
def test_a_header_that_contradicts_the_directory_is_refused(
    said: dict[str, object], refusal: Callable[[bytes], str]
) -> None:
    assert "another name or type in its own header" in refusal(raw_zip(Entry(b"a", local=said)))


@pytest.mark.parametrize("said", [{"crc": 1}, {"size": 1}, {"packed": 1}])
def test_sizes_that_contradict_the_directory_are_refused(
    said: dict[str, object], refusal: Callable[[bytes], str]
) -> None:
    assert "other sizes" in refusal(raw_zip(Entry(b"a", local=said)))


def test_a_wrong_check_sum_is_refused(refusal: Callable[[bytes], str]) -> None:
    wrong = {"crc": 1}
    assert "checksum" in refusal(raw_zip(Entry(b"a", local=wrong, central=wrong)))


def test_what_does_not_unpack_is_refused(refusal: Callable[[bytes], str]) -> None:
    data = raw_zip(Entry(b"a", b"x" * 1000, method=8))
    assert "does not unpack" in refusal(data[:31] + b"\xff\xff\xff" + data[34:])


def test_a_bomb_is_refused_before_it_is_unpacked(refusal: Callable[[bytes], str]) -> None:
    assert "bomb" in refusal(raw_zip(Entry(b"screenshots/a", b"\0" * (8 * MIB), method=8)))


@pytest.mark.slow
def test_a_bomb_that_declares_little_stops_at_what_it_declared(tmp_path: Path) -> None:
    declared = {"size": MIB}
    path = tmp_path / "bomb.zip"
    path.write_bytes(raw_zip(Entry(b"a", b"\0" * (200 * MIB), method=8, local=declared, central=declared)))
    tracemalloc.start()
    with pytest.raises(Refused, match="holds more than"):
        read_all(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * MIB


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (b"labels.jsonl", packages.LARGEST_LINES),
        (b"trajectories.jsonl", packages.LARGEST["trajectories.jsonl"]),
        (b"submission.json", packages.LARGEST_VALUE),
        (b"screenshots/a.png", packages.LARGEST["screenshots"]),
        (b"attachments/a", packages.LARGEST["attachments"]),
    ],
)
def test_a_file_that_is_too_large_is_refused(name: bytes, size: int, refusal: Callable[[bytes], str]) -> None:
    declared = {"size": size + 1, "packed": size // 100}
    room = raw_zip(Entry(name, method=8, central=declared, local=declared), behind=b"\0" * (size // 100 - 4))
    assert f"has {size + 1:,} bytes; the limit is {size:,}" in refusal(room)


def test_too_many_entries_are_refused(refusal: Callable[[bytes], str]) -> None:
    records = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 300_000, 300_000, 46 * 300_000, 0)
    records += struct.pack("<4sLQL", b"PK\x06\x07", 0, 46 * 300_000, 1)
    full = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert "the limit is 200,000" in refusal(b"\0" * (46 * 300_000) + records + full)


@pytest.mark.parametrize(
    "end",
    [{"count": 2}, {"count": 0}, {"length": 1}, {"at": 5}, {"at": 0}, {"count": 0xFFFF}, {"at": 0xFFFFFFFF}],
)
def test_an_end_that_makes_no_sense_is_refused(end: dict[str, int], refusal: Callable[[bytes], str]) -> None:
    assert "zip" in refusal(raw_zip(Entry(b"a"), end=end))


@pytest.mark.parametrize(
    ("directory", "locator"),
    [
        ((44, 0, 0, 1, 1, 2**63, 2**63), (0, 0, 1)),
        ((2**60, 0, 0, 1, 1, 47, 33), (0, 33 + 47, 1)),
        ((44, 0, 0, 1, 1, 47, 33), (0, 1, 1)),
        ((44, 0, 0, 1, 2, 47, 33), (0, 33 + 47, 1)),
        ((44, 1, 0, 1, 1, 47, 33), (0, 33 + 47, 1)),
        ((44, 0, 0, 1, 1, 47, 33), (0, 33 + 47, 7)),
    ],
)
def test_zip64_records_that_make_no_sense_are_refused(
    directory: tuple[int, ...], locator: tuple[int, ...], refusal: Callable[[bytes], str]
) -> None:
    length, disk, disk_of, here, count, size, at = directory
    records = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", length, 45, 45, disk, disk_of, here, count, size, at)
    records += struct.pack("<4sLQL", b"PK\x06\x07", *locator)
    said = {"records": records, "count": 0xFFFF, "length": 0xFFFFFFFF, "at": 0xFFFFFFFF}
    assert "zip" in refusal(raw_zip(Entry(b"a"), end=said))


def test_sizes_of_zip64_that_are_not_there_are_refused(refusal: Callable[[bytes], str]) -> None:
    assert "lacks its size" in refusal(raw_zip(Entry(b"a", central={"size": 0xFFFFFFFF})))
    short = Entry(b"a", central={"size": 0xFFFFFFFF}, extra=struct.pack("<2HL", 1, 4, 7))
    assert "lacks its size" in refusal(raw_zip(short))


@pytest.mark.parametrize("behind", [b"x", b"PK\x03\x04", b"\0" * 30])
def test_bytes_between_the_entries_are_refused(behind: bytes, refusal: Callable[[bytes], str]) -> None:
    assert "after a that belong to no entry" in refusal(raw_zip(Entry(b"a"), behind=behind))


def test_bytes_in_the_directory_behind_its_entries_are_refused(refusal: Callable[[bytes], str]) -> None:
    assert "more than its entries" in refusal(raw_zip(Entry(b"a"), end={"records": b"x" * 10, "length": 47 + 10}))


def test_something_behind_the_zip_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "follows its end" in refusal(raw_zip(Entry(b"a"), comment=b"hello"))
    assert "follows its end" in refusal(raw_zip(Entry(b"a")) + b"more")


def test_something_before_the_zip_is_refused(refusal: Callable[[bytes], str]) -> None:
    assert "zip" in refusal(b"#!/bin/sh\n" + raw_zip(Entry(b"a")))


def test_a_zip_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    whole = raw_zip(Entry(b"a", b"x" * 50, method=8), Entry(b"b", b"y" * 20))
    path = tmp_path / "cut.zip"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(Refused):
            read_all(path)


def test_a_zip_with_any_byte_changed_gives_the_same_files_or_is_refused(tmp_path: Path) -> None:
    """Dates, versions and attributes say nothing about content; every other byte is noticed."""
    whole = raw_zip(Entry(b"a", b"x" * 50, method=8), Entry(b"b", b"y" * 20))
    path = tmp_path / "changed.zip"
    for at in range(len(whole)):
        for value in (0x00, 0x01, 0xFF, whole[at] ^ 0x20):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            try:
                assert read_all(path) == {"a": b"x" * 50, "b": b"y" * 20}
            except Refused:
                continue


# --- folders -------------------------------------------------------------------------------------------------------


def test_a_folder_is_read_like_the_zip_it_was(tmp_path: Path) -> None:
    (tmp_path / "screenshots").mkdir()
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "screenshots" / "b").write_bytes(b"x" * 100_000)
    assert read_all(tmp_path) == {"a.json": b"{}", "screenshots/b": b"x" * 100_000}


def test_links_in_a_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("secret")
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "a.json").symlink_to(outside)
    with pytest.raises(Refused, match=r"a\.json is not a regular file"):
        read_all(folder)
    (folder / "a.json").unlink()
    (folder / "screenshots").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(Refused, match="screenshots is not a regular file"):
        read_all(folder)


def test_a_pipe_in_a_folder_is_refused(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(Refused, match="not a regular file"):
        read_all(tmp_path)


def test_a_name_of_a_folder_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[2J").write_text("")
    with pytest.raises(Refused, match=r"a\\x1b\[2J has characters"):
        read_all(tmp_path)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with open_package(str(tmp_path)) as package:
        (tmp_path / "a.json").write_text("{  }")
        with pytest.raises(Refused, match="changed during the check"):
            package.read("a.json")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="is neither a file nor a folder; name the bundle"):
        read_all(tmp_path / "none.zip")
    with pytest.raises(Refused, match="is neither a file nor a folder"):
        read_all(Path("/dev/null"))


def test_hashing_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("attachments/a", b"x" * (32 * MIB))
    tracemalloc.start()
    with open_package(str(path)) as package:
        package.sha256("attachments/a")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * MIB
