"""What the headers of a zip may say beside names and sizes: nothing that another program would read as other files.

Everything here is built byte by byte, as Info-ZIP, Python, Java and the systems' programs write it, or as none does.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluations.tests.raw_zip import Entry, extra_field, raw_zip
from evaluations.verifier.package import open_package
from evaluations.verifier.values import Refused

DATA = b"hello hello hello"
CRC = zlib.crc32(DATA)
LATE = 0x8  # sizes come behind the entry
UNKNOWN_YET = {"crc": 0, "packed": 0, "size": 0}
TIMES = extra_field(0x5455, b"\3" + bytes(8))
TIME = extra_field(0x5455, b"\3" + bytes(4))
OWNERS = extra_field(0x7875, b"\1\4" + bytes(4) + b"\4" + bytes(4))
WINDOWS = extra_field(0x000A, bytes(4) + struct.pack("<2H", 1, 24) + bytes(24))

Read = Callable[..., dict[str, bytes]]
Refusal = Callable[..., str]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """The files of a zip with these entries."""

    def files(*entries: Entry) -> dict[str, bytes]:
        path = tmp_path / "bundle.zip"
        path.write_bytes(raw_zip(*entries))
        with open_package(str(path)) as package:
            return {name: package.read(name) for name in package.names()}

    return files


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """What is said of a zip with these entries."""

    def refused(*entries: Entry) -> str:
        with pytest.raises(Refused) as error:
            read(*entries)
        says = str(error.value)
        assert says.isascii()
        assert says.isprintable()
        return says

    return refused


# --- extra fields --------------------------------------------------------------------------------------------------


def second_name(name: bytes, other: bytes) -> bytes:
    """Info-ZIP's Unicode Path: `unzip` writes the entry to ``other`` when the check sum is that of ``name``."""
    return extra_field(0x7075, struct.pack("<BL", 1, zlib.crc32(name)) + other)


def swapped(field: str) -> list[Entry]:
    report, attachment = b"reports/report.html", b"attachments/" + b"a" * 64
    pairs = ((report, attachment, b"what was signed"), (attachment, report, b"what unzip shows"))
    return [Entry(name, data, **{field: second_name(name, other)}) for name, other, data in pairs]


@pytest.mark.parametrize("field", ["extra", "local_extra"])
def test_two_files_that_unzip_would_write_in_each_others_place_are_refused(field: str, refusal: Refusal) -> None:
    says = refusal(*swapped(field))
    assert says.startswith(
        "reports/report.html has the extra field 0x7075 in the zip, by which others may read another"
    )
    assert says.endswith("; unpack the zip and create it again, with no more than names and times.")


@pytest.mark.parametrize("kind", [0x6375, 0x0017, 0x2605, 0x4453, 0x6542, 0x6C78, 0x756E, 0x9901, 0xA220, 0xFFFF])
@pytest.mark.parametrize("field", ["extra", "local_extra"])
def test_an_extra_field_that_is_not_known_to_be_harmless_is_refused(kind: int, field: str, refusal: Refusal) -> None:
    assert f"a has the extra field 0x{kind:04x}" in refusal(Entry(b"a", **{field: extra_field(kind, b"")}))


@pytest.mark.parametrize(
    ("local", "central"),
    [
        (TIMES + OWNERS, TIME + OWNERS),  # Info-ZIP and libarchive
        (b"", WINDOWS),  # 7-Zip
        (extra_field(0x5855, bytes(12)), extra_field(0x5855, bytes(8))),  # macOS
        (extra_field(0x7855, bytes(4)), extra_field(0x7855, b"")),
        (extra_field(0xCAFE, b""), extra_field(0xCAFE, b"")),  # Java
    ],
    ids=["infozip", "seven", "macos", "older", "java"],
)
def test_times_and_owners_are_passed_over(local: bytes, central: bytes, read: Read) -> None:
    assert read(Entry(b"a", DATA, local_extra=local, extra=central)) == {"a": DATA}


@pytest.mark.parametrize(
    "field",
    [
        extra_field(0x5455, bytes(14)),
        extra_field(0x7875, bytes(20)),
        extra_field(0x000A, bytes(33)),
        extra_field(0xCAFE, b"x"),
    ],
)
def test_times_and_owners_hold_no_more_than_that(field: bytes, refusal: Refusal) -> None:
    assert "has the extra field" in refusal(Entry(b"a", extra=field))
    assert "has the extra field" in refusal(Entry(b"a", local_extra=field))


@pytest.mark.parametrize("field", [TIME + TIME, TIME[:-1], TIME + b"\0", TIME + b"\x55\x54\5", b"\0\0\0"])
def test_extra_fields_that_are_doubled_or_cut_off_are_refused(field: bytes, refusal: Refusal) -> None:
    assert "doubled or cut off" in refusal(Entry(b"a", extra=field))
    assert "doubled or cut off" in refusal(Entry(b"a", local_extra=field))


def test_sizes_of_zip64_are_read_where_they_stand_for_others(read: Read) -> None:
    full = {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
    sizes = extra_field(1, struct.pack("<2Q", len(DATA), len(DATA)))
    only_size = extra_field(1, struct.pack("<Q", len(DATA)))
    forced = Entry(b"a", DATA, local=full, local_extra=sizes, central={"size": 0xFFFFFFFF}, extra=only_size)
    assert read(forced) == {"a": DATA}
    assert read(Entry(b"a", DATA, local=full, local_extra=sizes)) == {"a": DATA}


def test_sizes_of_zip64_that_stand_for_nothing_are_refused(refusal: Refusal) -> None:
    other = extra_field(1, struct.pack("<2Q", 1, 1))
    assert "two sizes or places" in refusal(Entry(b"a", DATA, extra=other))
    assert "two sizes or places" in refusal(Entry(b"a", DATA, local_extra=other))
    assert "two sizes or places" in refusal(Entry(b"a", DATA, central={"size": 0xFFFFFFFF}, extra=other))


# --- what stands behind an entry -----------------------------------------------------------------------------------


def late(after: bytes, name: bytes = b"a", **local: int) -> Entry:
    return Entry(name, DATA, flags=LATE, local=UNKNOWN_YET | local, after=after)


NARROW, WIDE = struct.pack("<3L", CRC, len(DATA), len(DATA)), struct.pack("<L2Q", CRC, len(DATA), len(DATA))
SIGNED = b"PK\7\10"


@pytest.mark.parametrize("after", [NARROW, SIGNED + NARROW, WIDE, SIGNED + WIDE], ids=len)
def test_check_sum_and_sizes_may_stand_behind_an_entry(after: bytes, read: Read) -> None:
    assert read(late(after), late(after, b"b")) == {"a": DATA, "b": DATA}
    assert read(late(after, size=len(DATA))) == {"a": DATA}  # Info-ZIP knows the size before


@pytest.mark.parametrize(
    "after",
    [
        b"",
        NARROW[:-1],
        NARROW + b"\0",
        SIGNED + WIDE + b"\0",
        b"PK\7\7" + NARROW,
        b"h" * 12,
        b"h" * 24,
        struct.pack("<3L", CRC + 1, len(DATA), len(DATA)),
        struct.pack("<3L", CRC, len(DATA) + 1, len(DATA)),
        struct.pack("<3L", CRC, len(DATA), len(DATA) + 1),
    ],
    ids=repr,
)
def test_anything_else_behind_an_entry_is_refused(after: bytes, refusal: Refusal) -> None:
    says = "a is followed by something other than its checksum and sizes in the zip"
    assert says in refusal(late(after))
    assert says in refusal(late(after), Entry(b"b"))


@pytest.mark.parametrize("said", [{"crc": 1}, {"packed": 1}, {"size": 1}])
def test_sizes_before_an_entry_are_unknown_or_the_same_as_behind_it(said: dict[str, int], refusal: Refusal) -> None:
    assert "other sizes in its own header" in refusal(late(NARROW, **said))


def test_check_sum_and_sizes_behind_an_entry_that_has_them_before_are_refused(refusal: Refusal) -> None:
    assert "after a that belong to no entry" in refusal(Entry(b"a", DATA, after=NARROW), Entry(b"b"))


def test_bytes_before_the_first_entry_are_refused(tmp_path: Path) -> None:
    """As in a program that unpacks itself: the offsets count them in."""
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(stub := io.BytesIO(b"#!/bin/sh\n"), "a") as archive:
        archive.writestr("a", DATA)
    path.write_bytes(stub.getvalue())
    with pytest.raises(Refused, match="begins with bytes that belong to no entry"), open_package(str(path)):
        pass


def records(start: int, count: int, length: int, at: int) -> bytes:
    """Zip64's form of the end at ``start``, and where it is."""
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, at)
    return end + struct.pack("<4sLQL", b"PK\6\7", 0, start, 1)


def test_an_end_in_the_form_of_zip64_may_stand_where_none_is_needed(tmp_path: Path) -> None:
    """As Info-ZIP does, which packs a pipe before it knows the size."""
    path = tmp_path / "bundle.zip"
    sizes = {"length": 46 + 1, "at": 30 + 1 + len(DATA)}
    path.write_bytes(raw_zip(Entry(b"a", DATA), end={"records": records(sum(sizes.values()), 1, **sizes)}))
    with open_package(str(path)) as package:
        assert package.read("a") == DATA


def test_an_end_in_the_form_of_zip64_that_leads_to_other_files_is_refused(refusal: Refusal) -> None:
    """It is hidden in what should be times: who looks only where it is needed would pass over it."""
    hidden = struct.pack("<4sLQL", b"PK\6\7", 0, 31, 1)
    says = refusal(Entry(b"a", records(0, 0, 0, 0), extra=extra_field(0x000A, bytes(12) + hidden)))
    assert "zip64 records are invalid" in says


# --- the rest ------------------------------------------------------------------------------------------------------


def test_a_comment_is_refused(refusal: Refusal) -> None:
    assert "a has a comment in the zip" in refusal(Entry(b"a", comment=b"hello"))


@pytest.mark.parametrize("flag", [1 << bit for bit in (4, 5, 7, 8, 9, 10, 12, 14, 15)])
def test_flags_that_no_program_should_set_are_refused(flag: int, refusal: Refusal) -> None:
    assert f"a is packed in an unknown way (flags 0x{flag:04x})" in refusal(Entry(b"a", flags=flag))


@pytest.mark.parametrize("flag", [0x0, 0x2, 0x4, 0x6, 0x800])
def test_flags_that_say_how_hard_it_was_packed_are_passed_over(flag: int, read: Read) -> None:
    assert read(Entry(b"a", DATA, method=8, flags=flag)) == {"a": DATA}


@pytest.mark.parametrize("disk", [1, 0xFFFF])
def test_an_entry_on_another_disk_is_refused(disk: int, refusal: Refusal) -> None:
    assert "part of several" in refusal(Entry(b"a", central={"disk": disk}))


NOTHING = {"method": 8, "size": 0, "crc": 0}


@pytest.mark.parametrize(
    "folder",
    [
        Entry(b"a/", b"", mode=stat.S_IFDIR | 0o755),
        Entry(b"a/", b""),
        Entry(b"a/", b"", method=8),  # two bytes that come to none
        Entry(b"a/", b"", local_extra=TIMES, extra=TIME),
    ],
)
def test_a_folder_that_holds_a_file_is_passed_over(folder: Entry, read: Read) -> None:
    assert read(folder, Entry(b"a/b", DATA)) == {"a/b": DATA}


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        (Entry(b"c/", b""), "c/ is an empty folder"),
        (Entry(b"a/b/", b""), "a/b/ is an empty folder"),
        (Entry(b"a/", b"", mode=stat.S_IFLNK | 0o777), "a/ is a symbolic link"),
        (Entry(b"a/", b"", flags=0x1), "a/ is encrypted"),
        (Entry(b"a/", b"\xff\xff", local=NOTHING, central=NOTHING), "a/ is damaged: it does not unpack"),
        (Entry(b"a/", b"", extra=second_name(b"a/", b"b")), "a/ has the extra field 0x7075"),
    ],
)
def test_a_folder_that_is_something_else_is_refused(folder: Entry, says: str, refusal: Refusal) -> None:
    assert says in refusal(folder, Entry(b"a/b", DATA))


def test_a_folder_that_is_there_twice_is_refused(refusal: Refusal) -> None:
    assert "a/ occurs twice in the zip" in refusal(Entry(b"a/", b""), Entry(b"a/", b""), Entry(b"a/b"))
