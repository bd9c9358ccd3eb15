"""URL routes of the API."""

from django.urls import path

from judges.api import disclosing, expectations, judges, runs

urlpatterns = [
    path("judges", judges.Judges.as_view(), name="api-judges"),
    path("judges/<int:pk>", judges.JudgeDetail.as_view(), name="api-judge"),
    path("model-terms", judges.Terms.as_view(), name="api-model-terms"),
    path("prompt-sets", judges.PromptSets.as_view(), name="api-prompt-sets"),
    path("prompt-sets/<str:digest>", judges.PromptSetDetail.as_view(), name="api-prompt-set"),
    path("benchmarks/<slug:slug>/judgments", expectations.ImportedJudgments.as_view(), name="api-imported-judgments"),
    path("benchmarks/<slug:slug>/expectations", expectations.Expectations.as_view(), name="api-expectations"),
    path(
        "benchmarks/<slug:slug>/expectations/import",
        expectations.ExpectationsImport.as_view(),
        name="api-import-expectations",
    ),
    path(
        "benchmarks/<slug:slug>/tasks/<str:external_id>/expectations/<str:expected>",
        expectations.ExpectationDetail.as_view(),
        name="api-expectation",
    ),
    path("submissions/<int:pk>/judge-runs", runs.Runs.as_view(), name="api-judge-runs"),
    path("submissions/<int:pk>/judge-runs/plan", runs.RunPlan.as_view(), name="api-judge-run-plan"),
    path("submissions/<int:pk>/predictions", runs.Predictions.as_view(), name="api-predictions"),
    path("judge-runs/<int:pk>", runs.RunDetail.as_view(), name="api-judge-run"),
    path("judge-runs/<int:pk>/pause", runs.RunPause.as_view(), name="api-judge-run-pause"),
    path("judge-runs/<int:pk>/resume", runs.RunResume.as_view(), name="api-judge-run-resume"),
    path("judge-runs/<int:pk>/cancel", runs.RunCancel.as_view(), name="api-judge-run-cancel"),
    path("judge-runs/<int:pk>/retry", runs.RunRetry.as_view(), name="api-judge-run-retry"),
    path("judge-runs/<int:pk>/judgments", runs.Judgments.as_view(), name="api-judgments"),
    path("judgments/<int:pk>", runs.JudgmentDetail.as_view(), name="api-judgment"),
    path("judgments/<int:pk>/trace", runs.JudgmentTrace.as_view(), name="api-judgment-trace"),
    path("judges/<int:pk>/robustness", judges.JudgeRobustness.as_view(), name="api-judge-robustness"),
    path("judges/<int:pk>/robustness/plan", judges.RobustnessPlan.as_view(), name="api-plan-robustness"),
    path("judges/<int:pk>/test", runs.JudgeTest.as_view(), name="api-test-judge"),
    path("model-terms/<int:pk>", judges.TermsDetail.as_view(), name="api-model-terms-of"),
    path("benchmarks/<slug:slug>/quotas", disclosing.Quotas.as_view(), name="api-quotas"),
    path("trajectories/<int:pk>/second-stage", disclosing.SecondStageDetail.as_view(), name="api-second-stage"),
    path(
        "trajectories/<int:pk>/second-stage/opinion",
        disclosing.SecondStageOpinion.as_view(),
        name="api-second-stage-opinion",
    ),
    path(
        "trajectories/<int:pk>/network-evidence",
        disclosing.NetworkEvidenceDetail.as_view(),
        name="api-network-evidence",
    ),
]
