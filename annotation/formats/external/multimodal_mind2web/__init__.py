"""Convert rows of Multimodal-Mind2Web, one for each step that a person did, to reference trajectories and tasks.

A row has annotation_id, action_uid, website, domain, subdomain, confirmed_task, cleaned_html, operation,
pos_candidates, neg_candidates, action_reprs, target_action_index, target_action_reprs, screenshot, and optionally
split. raw_html is never read. Rows are streamed: those of one task need not be adjacent, and memory does not grow with
them.
"""

from annotation.formats.external.multimodal_mind2web.converting import FORMAT, convert_rows, read_tasks
from annotation.formats.external.multimodal_mind2web.reading import is_rows
from annotation.formats.external.multimodal_mind2web.reference import (
    Operation,
    ReferenceStep,
    parse_reference,
)

__all__ = [
    "FORMAT",
    "Operation",
    "ReferenceStep",
    "convert_rows",
    "is_rows",
    "parse_reference",
    "read_tasks",
]  # fmt: skip
