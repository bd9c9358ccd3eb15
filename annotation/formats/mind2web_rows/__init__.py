"""Multimodal-Mind2Web: rows, one for each step of a task as a person did it, into reference trajectories and tasks.

A row has annotation_id, action_uid, website, domain, subdomain, confirmed_task, cleaned_html, operation,
pos_candidates, neg_candidates, action_reprs, target_action_index, target_action_reprs and screenshot. raw_html is
never read. Everything is streamed: rows of one task need not be neighbours, and memory does not grow with them.
"""

from annotation.formats.mind2web_rows.converting import convert, read_tasks
from annotation.formats.mind2web_rows.reading import is_rows
from annotation.formats.mind2web_rows.reference import Operation, ReferenceStep, operation_of, reference_of

__all__ = ["Operation", "ReferenceStep", "convert", "is_rows", "operation_of", "read_tasks", "reference_of"]
