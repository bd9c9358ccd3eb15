"""README.md of a bundle, for who opens the zip and knows nothing of it."""

from __future__ import annotations

from collections.abc import Collection

from evaluations.verifier.documents import Document
from evaluations.verifier.parts import PARTS
from evaluations.verifier.rules import NOT_PROVED, PROVED
from evaluations.verifier.wrongs import counted

CHECK_COMMAND = "python3 -I verify.py . --keys ../webverdict-keys.json"
TO_CHECK = f"""\
## Check it

    python3 -I verify.py .

It needs Python 3.10 or newer, no package and no network, and works on the unpacked folder or on the zip; `-I` keeps
Python from taking anything else out of the folder. A program that comes with what it checks could have been changed
with it: take `verify.py` from the makers of WebVerdict, or from somebody else you trust, where you can.

The signature proves who made the bundle only if you know the key from elsewhere. Fetch the keys that the submitter
publishes (`/.well-known/webverdict-keys.json` of their instance) and give them:

    {CHECK_COMMAND}

It prints PASS, FAIL or NOTE for every check, and ends with 0 where nothing failed. Give what else you know, too:

- `--tasks FILE`: the task list of your benchmark (JSON). Otherwise only the submitter says which tasks there are.
- `--chain ID` and `--head HASH`: hashes of the chain that you noted before. A chain that was written anew then fails.
- `--anchors FILE`: heads of the chain from where they were published.

To run other judges or people over the trajectories, open the bundle in WebVerdict (`import_audit`) and export them as
v2 packages (`export_submission --format trajectories-v2`).
"""

CANNOT = "\n".join(f"- {limit[0].upper()}{limit[1:]}." for limit in NOT_PROVED)
LIMITS_IN_WORDS = f"## What it cannot prove\n\n{CANNOT}\n\nIt does show that {PROVED}.\n"


def readme(submission: Document, paths: Collection[str]) -> bytes:
    """The text, with the parts that this bundle has; ``paths`` are those of its files."""
    title = f"# {_plain_line(submission['agent'])} on {_plain_line(submission['benchmark_name'])}\n"
    says = (
        "An evidence bundle of WebVerdict: what an agent did, what people said about it and why, and how that became "
        "one verdict for each task.\n"
    )
    blocks = [title, says, _standing_in_words(submission), _table_of_files(paths), TO_CHECK, LIMITS_IN_WORDS]
    return "\n".join(block for block in blocks if block).encode()


def _standing_in_words(submission: Document) -> str:
    frozen, labels = submission["frozen_at"], submission["required_labels"]
    lines = [
        f"- {counted(submission['trajectories'], 'trajectory', 'trajectories')}, {counted(labels, 'label')} each",
        f"- version {submission['protocol_version']} of the protocol",
        f"- {'frozen at ' + frozen if frozen else 'not frozen: labels could still change'}",
        f"- head of the chain of events: `{submission['chain']['head'] or 'none'}`",
    ]
    if submission["contents"]["screenshots"] == "digests":
        lines.append("- without pictures and attachments: only their SHA-256 are here")
    if submission["partial"]:
        missing = counted(len(submission["missing"]), "thing is", "things are")
        lines.append(f"- **partial**: {missing} missing; `submission.json` lists what")
    return "\n".join(lines) + "\n"


def _table_of_files(paths: Collection[str]) -> str:
    rows = [f"| `{part.path}` | {part.says} |" for part in PARTS if any(map(part.holds, paths))]
    return "\n".join(["## Files\n", "| file | what it holds |", "|---|---|", *rows]) + "\n"


def _plain_line(text: str) -> str:
    """A name that cannot be taken for markup."""
    plain = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|!" else letter for letter in plain)
