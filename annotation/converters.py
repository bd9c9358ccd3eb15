"""Converters of addresses, for those of pages and of the API."""

from django.urls import register_converter
from django.urls.converters import StringConverter

from annotation.screenshots import Rendition


class RenditionConverter(StringConverter):
    regex = "|".join(Rendition)


register_converter(RenditionConverter, "rendition")
