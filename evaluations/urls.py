"""Addresses of the pages."""

from django.urls import path

from evaluations import views

urlpatterns = [
    path("submissions/<int:pk>/export", views.export, name="export"),
    path("submissions/<int:pk>/export/check", views.export_check, name="export-check"),
    path("submissions/<int:pk>/export/<slug:export_format>", views.export_file, name="export-file"),
]
