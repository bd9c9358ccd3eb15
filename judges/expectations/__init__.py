"""What trajectories of a task are held against by judges, as maintainers write it: network checks, rubrics.

They are what a judge goes by, so nobody sees or changes them who reviews an open submission of the benchmark.
"""

from judges.expectations.files import FileEntry
from judges.expectations.importing import import_file, import_path
from judges.expectations.kinds import Kind, find_line, find_problems, parse_text, strip_line
from judges.expectations.points import find_unknown, list_accepted
from judges.expectations.writing import (
    find_current,
    find_newest,
    select_history,
    start_from_key_points,
    withdraw,
    write,
)

__all__ = [
    "FileEntry",
    "Kind",
    "find_current",
    "find_line",
    "find_newest",
    "find_problems",
    "find_unknown",
    "import_file",
    "import_path",
    "list_accepted",
    "parse_text",
    "select_history",
    "start_from_key_points",
    "strip_line",
    "withdraw",
    "write",
]
