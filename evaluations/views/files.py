"""A table of a page as a CSV file."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import Http404, HttpResponse
from django.utils.http import content_disposition_header

from annotation.formats.spreadsheets import file_name
from evaluations.tables import Table


def csv_file(tables: Iterable[Table], name: str, *about: str) -> HttpResponse:
    """The table of that name as an attachment; Http404 for a name that the page does not have.

    ``about`` says in the file's name what the table is about; agents may be called anything.
    """
    table = next((table for table in tables if table.name == name), None)
    if table is None:
        raise Http404("This page has no such table.")
    response = HttpResponse(table.as_csv(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = str(content_disposition_header(True, file_name(*about, table.name)))
    return response
