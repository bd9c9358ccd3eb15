"""What trajectories of a task are held against by judges, as maintainers write it: network checks, rubrics.

They are what a judge goes by, so nobody sees or changes them who reviews an open submission of the benchmark.
"""

from judges.expectations.files import FileEntry
from judges.expectations.importing import import_file, import_path
from judges.expectations.kinds import Kind, line_of, parsed, problems_of, words_of
from judges.expectations.points import accepted, unknown
from judges.expectations.writing import current, history, newest, start_from_key_points, withdraw, write

__all__ = [
    "FileEntry",
    "Kind",
    "accepted",
    "current",
    "history",
    "import_file",
    "import_path",
    "line_of",
    "newest",
    "parsed",
    "problems_of",
    "start_from_key_points",
    "unknown",
    "withdraw",
    "words_of",
    "write",
]
