"""Addresses of the API, below /api/v1/."""

from django.urls import path

from evaluations import api

urlpatterns = [
    path("submissions/<int:pk>/export-check", api.ExportCheck.as_view(), name="api-export-check"),
    path("submissions/<int:pk>/exports/<slug:export_format>", api.ExportFile.as_view(), name="api-export"),
    # The last address of the last floor below /api/v1/: whatever nobody answers is answered in the API's own way.
    path("<path:rest>", api.Nowhere.as_view(), name="api-nowhere"),
]
