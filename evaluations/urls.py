"""Addresses of the pages."""

from django.urls import path

from evaluations import views

urlpatterns = [
    path("submissions/<int:pk>/agreement", views.agreement, name="agreement"),
    path("submissions/<int:pk>/comparison", views.comparison, name="comparison"),
    path("submissions/<int:pk>/report", views.report, name="printable-report"),
    path("submissions/<int:pk>/export", views.export, name="export"),
    path("submissions/<int:pk>/export/check", views.export_check, name="export-check"),
    path("submissions/<int:pk>/export/<slug:export_format>", views.export_file, name="export-file"),
    path("benchmarks/<slug:slug>/agents", views.agents, name="agents"),
    path("benchmarks/<slug:slug>/judges", views.judge_standings, name="judge-standings"),
    path("benchmarks/<slug:slug>/agreement", views.benchmark_agreement, name="benchmark-agreement"),
    path("benchmarks/<slug:slug>/comparison", views.benchmark_comparison, name="benchmark-comparison"),
    path("benchmarks/<slug:slug>/differences", views.differences, name="differences"),
]
