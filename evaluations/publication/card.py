"""The card of a dataset: README.md with the YAML front matter of Hugging Face."""

from __future__ import annotations

from collections import Counter

import yaml

from annotation.formats.printable import counted, printable
from annotation.models import Submission
from annotation.records import Problem, Verdict
from evaluations.publication.content import VERDICT_NAMES, measure_success
from evaluations.publication.options import NOT_STATED, Options
from evaluations.publication.tables import Table

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
LARGEST = "1M<n<10M"
CARD = """\
# {title}

Trajectories of a web agent with the verdicts of people, exported from WebVerdict {version}.

- Agent: {agent}
- Benchmark: {benchmark}
- Labels: {labels} independent labels for each trajectory, protocol version {protocol}; an adjudicator decided disputes,
  flagged trajectories and a random sample of {rate:.0%} of the unanimous ones.
- Frozen: {frozen}
- Creator: {creator}
- Licence: {licence}

{success}
{partial}
## Tables

Verdicts are 0 (failure), 1 (success) and 2 (not executable).

```python
from datasets import load_dataset

steps = load_dataset("path/of/this/folder", "steps", split="test")
```

{tables}
## Screenshots

The images are in the column `screenshot` of `steps`, so that viewers show them: the files as uploaded.
A redacted image is the one with covered areas, as PNG. `screenshot_sha256` is the SHA-256 of the image file, as in the
evidence bundle; redacted images are named by their originals there.

## People

Annotators are A1, A2, ... and adjudicators Q1, Q2, ...: no table states who they are. Texts of tasks, agents and pages
are as uploaded, and can contain personal data.

## Not in the dataset

Flags, reports to the maintainer, attachments such as network traces, and the replies of judges' models. Flags and
reports are in the file of labels, and attachments in the evidence bundle.
"""


def build(
    submission: Submission,
    options: Options,
    counts: Counter[Verdict],
    missing: tuple[Problem, ...],
    tables: dict[Table, int],
    version: str,
) -> bytes:
    """Return README.md; ``tables`` are those with rows, and the number of their rows."""
    frozen = submission.frozen_at
    body = CARD.format(
        title=_title(submission),
        version=version,
        agent=_inline(str(submission)),
        benchmark=_inline(submission.benchmark.name),
        labels=submission.required_labels,
        protocol=submission.protocol_version,
        rate=submission.spot_check_rate,
        frozen=f"{frozen:%Y-%m-%d %H:%M} UTC" if frozen else NOT_STATED,
        creator=_inline(options.creator),
        licence=options.licence or "not stated. Choose one before you publish the dataset.",
        success=_describe_success(counts),
        partial=_describe_missing(missing),
        tables="\n".join(_describe_table(table, rows) for table, rows in tables.items()),
    )
    front = yaml.safe_dump(_front_matter(submission, options, tables), sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{front}---\n\n{body}".encode()


def _front_matter(submission: Submission, options: Options, tables: dict[Table, int]) -> dict[str, object]:
    largest = max(tables.values(), default=0)
    return {
        "pretty_name": _title(submission),
        **({"license": options.licence} if options.licence else {}),
        "tags": ["web-agents", "human-evaluation", "trajectories"],
        "size_categories": [next((name for most, name in SIZES if largest < most), LARGEST)],
        "configs": [
            {
                "config_name": table.name,
                "data_files": [{"split": "test", "path": table.path}],
                **({"default": True} if number == 0 else {}),
            }
            for number, table in enumerate(tables)
        ],
    }


def _title(submission: Submission) -> str:
    return _inline(f"{submission} on {submission.benchmark.name}")


def _inline(text: str) -> str:
    """Return text of a person or a file for one line of Markdown, without its special characters."""
    return printable(" ".join(text.split())).translate({ord(each): f"\\{each}" for each in "\\`*_[]<>#|"})


def _describe_success(counts: Counter[Verdict]) -> str:
    rate = measure_success(counts)
    named = ", ".join(f"{counts[verdict]} {VERDICT_NAMES[verdict].replace('_', ' ')}" for verdict in Verdict)
    total = counted(rate.n, "trajectory", "trajectories")
    if rate.value is None or rate.low is None or rate.high is None:
        return f"{total} with a final verdict."
    interval = f"95% interval {rate.low:.1%} to {rate.high:.1%}, Wilson"
    return f"{total}: {named}. Success rate {rate.value:.1%} ({interval}); not executable counts as not a success."


def _describe_missing(missing: tuple[Problem, ...]) -> str:
    if not missing:
        return ""
    lines = "\n".join(f"- {problem.code}: {_inline(problem.message)}" for problem in missing)
    return f"\n**This dataset is partial.** Missing:\n\n{lines}\n"


def _describe_table(table: Table, rows: int) -> str:
    columns = "\n".join(f"| `{name}` | {says} |" for name, (_, says) in table.columns.items())
    about = f"{table.description} {counted(rows, 'row')}."
    return f"### {table.name}\n\n{about}\n\n| Column | Meaning |\n|---|---|\n{columns}\n"
