"""Files of a prompt set from a path: one file, a folder, or a zip, none of which is trusted."""

from __future__ import annotations

from pathlib import Path

from annotation.formats.archive import MIB, Limits, PackageError, open_package
from annotation.formats.printable import printable
from annotation.records import Problem
from judges.prompt_source.texts import LARGEST, SourceError

# A checkout of a benchmark may be large; of its files only texts and Python source are read.
FOLDER = Limits(entries=20_000, total_bytes=4096 * MIB)
ZIP = Limits(entries=2_000, total_bytes=64 * MIB)
READ = (".md", ".txt", ".py")
MOST_READ = 500


def gather(path: Path) -> dict[str, bytes]:
    """The files at ``path`` by name; SourceError names what cannot be read. A name begins with that of the path."""
    try:
        if path.is_dir() or path.suffix.lower() == ".zip":
            return _read_zip(path)
        if not path.is_file():  # a device or a pipe may have no end
            raise SourceError(Problem("file_unreadable", f"{printable(str(path))} is no file.", "files"))
        if path.stat().st_size > LARGEST:
            raise SourceError(Problem("file_too_large", f"{printable(str(path))} is larger than {LARGEST:,} bytes."))
        return {path.name: path.read_bytes()}
    except OSError as error:
        message = f"{printable(str(path))} cannot be read: {error.strerror}."
        raise SourceError(Problem("file_unreadable", message, "files")) from None


def _read_zip(path: Path) -> dict[str, bytes]:
    with open_package(path, FOLDER if path.is_dir() else ZIP) as package:
        names = [name for name in package.names() if name.lower().endswith(READ)]
        if not names and package.problems:
            raise SourceError(*package.problems[:20])
        if len(names) > MOST_READ:
            message = f"{printable(path.name)} has {len(names)} texts and sources; at most {MOST_READ} are read."
            raise SourceError(Problem("too_many_files", f"{message} Name the file that holds the prompts.", "files"))
        try:
            return {f"{path.name}/{name}": package.read(name, LARGEST) for name in names}
        except PackageError as error:
            raise SourceError(error.problem) from None
