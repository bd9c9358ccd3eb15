"""Packages: what a folder or zip may hold, and how everything else is named and never followed."""

from __future__ import annotations

import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from annotation.formats.archive import MIB, Limits, PackageError, open_package
from annotation.tests.formats_builders import codes, link, said, write_zip


def listed(path: Path, limits: Limits | None = None) -> tuple[list[str], list]:
    with open_package(path, limits or Limits()) as package:
        return package.names(), package.problems


def test_a_folder_lists_its_files_sorted_with_relative_names(tmp_path):
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "b" / "deep" / "x.txt").write_bytes(b"12345")
    (tmp_path / "a.txt").write_bytes(b"1")

    with open_package(tmp_path) as package:
        assert package.names() == ["a.txt", "b/deep/x.txt"]
        assert package.size("b/deep/x.txt") == 5
        assert package.read("b/deep/x.txt", 5) == b"12345"
        assert package.problems == []


def test_a_zip_is_read_in_place_and_leaves_nothing_on_the_disk(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("t/", b""), ("t/result.json", b"{}"), ("t/a.txt", b"abc")])

    with open_package(path) as package:
        assert package.names() == ["t/a.txt", "t/result.json"]
        assert package.size("t/a.txt") == 3
        assert package.read("t/a.txt", 100) == b"abc"
        assert package.problems == []
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "/etc/passwd", "C:/evil", "c:evil", "a\\b", "..\\evil", "a//b", "./a", "a/..", ".."],
)
def test_a_path_that_leads_outside_is_named_and_not_listed(tmp_path, name):
    names, problems = listed(write_zip(tmp_path / "p.zip", [(name, b"x"), ("good.txt", b"x")]))

    assert names == ["good.txt"]
    assert codes(problems) == {"path_outside"}
    assert name in said(problems)


def test_links_are_named_and_not_listed_in_a_zip(tmp_path):
    names, problems = listed(write_zip(tmp_path / "p.zip", [(link("t/0.png"), b"/etc/passwd")]))

    assert names == []
    assert codes(problems) == {"symlink"}
    assert "t/0.png" in said(problems)


def test_links_and_pipes_are_named_and_not_followed_in_a_folder(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").symlink_to(outside / "secret.txt")
    (inside / "folder").symlink_to(outside, target_is_directory=True)
    os.mkfifo(inside / "pipe")

    names, problems = listed(inside)

    assert names == []
    assert {problem.where: problem.code for problem in problems} == {
        "file": "symlink",
        "folder": "symlink",
        "pipe": "special_file",
    }


def test_a_link_that_replaces_a_file_after_the_listing_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("secret")
    home = tmp_path / "home"
    home.mkdir()
    (home / "a.txt").write_text("good")
    with open_package(home) as package:
        (home / "a.txt").unlink()
        (home / "a.txt").symlink_to(tmp_path / "secret")
        with pytest.raises(PackageError, match=r"a\.txt"):
            package.read("a.txt", 100)


def test_a_pipe_that_replaces_a_file_after_the_listing_does_not_hang(tmp_path):
    (tmp_path / "a.txt").write_text("good")
    with open_package(tmp_path) as package:
        (tmp_path / "a.txt").unlink()
        os.mkfifo(tmp_path / "a.txt")
        with pytest.raises(PackageError, match=r"a\.txt"):
            package.read("a.txt", 100)


def test_a_link_whose_target_is_the_package_itself_is_no_endless_loop(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)

    assert codes(listed(tmp_path)[1]) == {"symlink"}


def test_a_folder_nested_deeper_than_a_name_may_be_long_is_refused_without_recursion(tmp_path):
    deep = tmp_path / ("d/" * 600)
    deep.mkdir(parents=True)
    (deep / "x").write_bytes(b"1")

    names, problems = listed(tmp_path)

    assert names == []
    assert codes(problems) == {"name_too_long"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_a_problem_and_neither_is_read(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("t/result.json", b"1"), ("t/result.json", b"2")])

    with open_package(path) as package:
        assert codes(package.problems) == {"duplicate_name"}
        assert "t/result.json" in said(package.problems)
        with pytest.raises(PackageError, match="twice"):
            package.read("t/result.json", 10)


def test_folders_that_differ_only_in_case_are_both_named(tmp_path):
    _, problems = listed(write_zip(tmp_path / "p.zip", [("Task/a", b""), ("task/a", b""), ("task/b", b"")]))

    assert [(problem.code, problem.where) for problem in problems] == [
        ("case_collision", "Task"),
        ("case_collision", "task"),
    ]


def test_names_that_differ_only_in_the_spelling_of_an_accent_collide(tmp_path):
    _, problems = listed(write_zip(tmp_path / "p.zip", [("caf\u00e9/a", b""), ("cafe\u0301/b", b"")]))

    assert codes(problems) == {"case_collision"}


def test_a_name_that_is_a_file_and_a_folder_is_a_problem(tmp_path):
    _, problems = listed(write_zip(tmp_path / "p.zip", [("a", b""), ("a/b", b"")]))

    assert [(problem.code, problem.where) for problem in problems] == [("duplicate_name", "a")]


def test_an_encrypted_entry_is_named_and_refused_on_reading(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("t/0.png", b"x")])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)

    with open_package(path) as package:
        assert "t/0.png is encrypted" in said(package.problems)
        with pytest.raises(PackageError, match="encrypt"):
            package.read("t/0.png", 10)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_than_deflate_are_refused_because_they_cannot_be_bounded(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "p.zip", "w", compression=method) as archive:
        archive.writestr("a.txt", b"x" * 100)

    assert codes(listed(tmp_path / "p.zip")[1]) == {"compression_unsupported"}


def test_a_bomb_is_named_by_its_ratio_and_never_unpacked(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("bomb.png", bytes(17 * MIB))])
    with open_package(path) as package:
        assert codes(package.problems) == {"compression_ratio"}
        tracemalloc.start()
        with pytest.raises(PackageError, match=r"bomb\.png"):
            package.read("bomb.png", 100 * MIB)
        assert tracemalloc.get_traced_memory()[1] < MIB
        tracemalloc.stop()


def test_a_small_file_may_be_packed_as_tightly_as_it_likes(tmp_path):
    assert listed(write_zip(tmp_path / "p.zip", [("white.png", bytes(MIB))]))[1] == []


def test_a_read_stops_at_the_limit_of_the_caller(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("a", b"123456")])
    with open_package(path) as package:
        assert package.read("a", 6) == b"123456"
        with pytest.raises(PackageError, match="larger than 5 bytes"):
            package.read("a", 5)


def test_a_header_that_lies_about_the_size_does_not_get_more_bytes_read(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("a.txt", b"x" * 5000)])
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    path.write_bytes(data)

    with open_package(path) as package, pytest.raises(PackageError, match=r"a\.txt"):
        package.read("a.txt", 100_000)


def test_flipped_bytes_are_found_by_the_checksum_and_the_file_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr("t/0001.png", b"pixels")
    data = (tmp_path / "p.zip").read_bytes().replace(b"pixels", b"pixelz")
    (tmp_path / "p.zip").write_bytes(data)

    with open_package(tmp_path / "p.zip") as package:
        assert package.problems == []
        with pytest.raises(PackageError, match=r"0001\.png cannot be read") as caught:
            package.read("t/0001.png", 100)
    assert caught.value.problem.code == "file_damaged"
    assert caught.value.problem.where == "t/0001.png"


def test_entries_that_share_bytes_are_refused(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("a", b"first"), ("b", b"second")])
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = bytes(4)  # b's header is now a's
    path.write_bytes(data)

    with open_package(path) as package:
        assert "overlapping" in codes(package.problems)
        with pytest.raises(PackageError):
            package.read("a", 100)


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" + b"x" * 100, b"{}" * 500])
def test_something_else_than_a_zip_is_called_that(tmp_path, data):
    (tmp_path / "p.zip").write_bytes(data)

    names, problems = listed(tmp_path / "p.zip")

    assert names == []
    assert "is not a readable zip" in said(problems)


def test_a_path_that_does_not_exist_is_a_problem_not_a_crash(tmp_path):
    assert codes(listed(tmp_path / "nothing.zip")[1]) == {"zip_unreadable"}


def test_a_truncated_zip_is_called_not_readable(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("a", os.urandom(2000))])
    path.write_bytes(path.read_bytes()[:1000])

    assert "not a readable zip" in said(listed(path)[1])


@pytest.mark.parametrize(("limits", "code"), [
    (Limits(entries=2), "too_many_entries"),
    (Limits(total_bytes=5), "package_too_large"),
    (Limits(directory_bytes=100), "zip_unreadable"),
])  # fmt: skip
def test_a_zip_over_a_limit_is_refused_whole(tmp_path, limits, code):
    path = write_zip(tmp_path / "p.zip", [("a", b"12"), ("b", b"34"), ("c", b"56")])

    names, problems = listed(path, limits)

    assert names == []
    assert codes(problems) == {code}


@pytest.mark.parametrize(("limits", "code"), [
    (Limits(entries=2), "too_many_entries"),
    (Limits(total_bytes=5), "package_too_large"),
])  # fmt: skip
def test_a_folder_over_a_limit_is_refused_whole(tmp_path, limits, code):
    for name in "abc":
        (tmp_path / name).write_bytes(b"12")

    names, problems = listed(tmp_path, limits)

    assert names == []
    assert codes(problems) == {code}


def test_a_single_file_over_the_limit_is_named(tmp_path):
    _, problems = listed(write_zip(tmp_path / "p.zip", [("a", b"12"), ("big", b"123")]), Limits(member_bytes=2))

    assert [(problem.code, problem.where) for problem in problems] == [("file_too_large", "big")]


@pytest.mark.parametrize("name", ["inner.zip", "x/pack.tar.gz", "a.7z", "B.ZIP"])
def test_an_archive_inside_the_package_is_named(tmp_path, name):
    _, problems = listed(write_zip(tmp_path / "p.zip", [(name, b"x")]))

    assert codes(problems) == {"nested_archive"}
    assert name in said(problems)


NOISE = ["__MACOSX/._a", "t/.DS_Store", "t/._0.png", "Thumbs.db", "a/desktop.ini", ".git/config", ".gitattributes"]


def test_what_systems_leave_behind_is_ignored_silently(tmp_path):
    home = tmp_path / "folder"
    for name in NOISE:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(b"x")

    assert listed(home) == ([], [])
    assert listed(write_zip(tmp_path / "p.zip", [(name, b"x") for name in NOISE])) == ([], [])


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\u202egpj.exe"])
def test_a_name_that_cannot_be_shown_is_refused_and_shown_escaped(tmp_path, name):
    names, problems = listed(write_zip(tmp_path / "p.zip", [(name, b"x")]))

    assert names == []
    assert codes(problems) == {"name_unprintable"}
    assert said(problems).isprintable()


def test_a_name_that_hides_a_nul_character_is_refused(tmp_path):
    path = write_zip(tmp_path / "p.zip", [("aXb.png", b"x")])
    path.write_bytes(path.read_bytes().replace(b"aXb.png", b"a\x00b.png"))

    assert codes(listed(path)[1]) == {"name_unprintable"}


def test_a_name_that_is_not_utf8_is_refused_in_a_folder(tmp_path):
    (tmp_path / os.fsdecode(b"a\xff.png")).write_bytes(b"x")

    names, problems = listed(tmp_path)

    assert names == []
    assert codes(problems) == {"name_unprintable"}
    assert said(problems).isprintable()


def test_very_long_names_are_refused_and_shortened_in_the_message(tmp_path):
    _, problems = listed(write_zip(tmp_path / "p.zip", [("a" * 300, b"x"), ("b/" * 600 + "c", b"x")]))

    assert [problem.code for problem in problems] == ["name_too_long", "name_too_long"]
    assert len(said(problems)) < 1200


def test_names_in_other_scripts_and_with_narrow_spaces_are_welcome(tmp_path):
    wanted = ["Screenshot at 3.04\u202fPM.png", "任务/截图 1.png"]

    names, problems = listed(write_zip(tmp_path / "p.zip", [(name, b"x") for name in wanted]))

    assert (sorted(names), problems) == (sorted(wanted), [])
