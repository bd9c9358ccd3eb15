"""Addresses of the API, below /api/v1/."""

from django.urls import path

from annotation.api import account, catalogue, hours, resumable, submissions, webhooks

urlpatterns = [
    path("benchmarks", catalogue.Benchmarks.as_view(), name="api-benchmarks"),
    path("benchmarks/<slug:slug>/tasks", catalogue.Tasks.as_view(), name="api-tasks"),
    path("benchmarks/<slug:slug>/labels", catalogue.ImportedLabels.as_view(), name="api-imported-labels"),
    path("benchmarks/<slug:slug>/active-hours", hours.BenchmarkHours.as_view(), name="api-benchmark-hours"),
    path("uploads", catalogue.Uploads.as_view(), name="api-uploads"),
    path("uploads/<uuid:pk>", catalogue.UploadStatus.as_view(), name="api-upload"),
    path("uploads/resumable", resumable.ResumableUploads.as_view(), name="api-resumable-uploads"),
    path("uploads/resumable/<uuid:pk>", resumable.ResumableUploadParts.as_view(), name="api-resumable-upload"),
    path("submissions", submissions.Submissions.as_view(), name="api-submissions"),
    path("submissions/<int:pk>", submissions.SubmissionDetail.as_view(), name="api-submission"),
    path("submissions/<int:pk>/progress", submissions.Progress.as_view(), name="api-progress"),
    path("submissions/<int:pk>/members", submissions.Members.as_view(), name="api-members"),
    path("submissions/<int:pk>/active-hours", hours.SubmissionHours.as_view(), name="api-active-hours"),
    path("submissions/<int:pk>/trajectories", submissions.Trajectories.as_view(), name="api-trajectories"),
    path("submissions/<int:pk>/labels", submissions.Labels.as_view(), name="api-labels"),
    path("submissions/<int:pk>/adjudications", submissions.Adjudications.as_view(), name="api-adjudications"),
    path("submissions/<int:pk>/reports", submissions.Reports.as_view(), name="api-reports"),
    path("submissions/<int:pk>/redactions", submissions.Redactions.as_view(), name="api-redactions"),
    path("submissions/<int:pk>/verdicts", submissions.Verdicts.as_view(), name="api-verdicts"),
    path("trajectories/<int:pk>", submissions.TrajectoryDetail.as_view(), name="api-trajectory"),
    path("webhooks", webhooks.Webhooks.as_view(), name="api-webhooks"),
    path("webhooks/<uuid:pk>", webhooks.WebhookDetail.as_view(), name="api-webhook"),
    path("webhooks/<uuid:pk>/rotate", webhooks.Rotation.as_view(), name="api-webhook-rotate"),
    path("webhooks/<uuid:pk>/test", webhooks.Test.as_view(), name="api-webhook-test"),
    path("webhooks/<uuid:pk>/deliveries", webhooks.Deliveries.as_view(), name="api-webhook-deliveries"),
    path(
        "webhooks/<uuid:pk>/deliveries/<uuid:delivery_pk>/replay", webhooks.Replay.as_view(), name="api-webhook-replay"
    ),
    path("tokens", account.Tokens.as_view(), name="api-tokens"),
    path("tokens/<int:pk>", account.TokenRevocation.as_view(), name="api-token"),
    path("account/data", account.OwnData.as_view(), name="api-account-data"),
    path("my/active-hours", hours.OwnHours.as_view(), name="api-my-hours"),
    path("my/labels", account.OwnLabels.as_view(), name="api-my-labels"),
]
