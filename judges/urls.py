"""Addresses of the pages."""

from django.urls import path

from judges.views import imports, judges, judgments, prompts, runs, second_stage, terms

urlpatterns = [
    path("judges", judges.judges, name="judges"),
    path("judges/define", judges.define, name="define-judge"),
    path("judges/create", judges.create, name="create-judge"),
    path("judges/<int:pk>", judges.judge, name="judge"),
    path("judges/<int:pk>/edit", judges.edit, name="edit-judge"),
    path("judges/<int:pk>/change", judges.change, name="change-judge"),
    path("judges/<int:pk>/delete", judges.delete, name="delete-judge"),
    path("judges/<int:pk>/test", judges.test_judge, name="test-judge"),
    path("judges/prompts", prompts.prompts, name="prompt-sets"),
    path("judges/prompts/load", prompts.load, name="load-prompts"),
    path("judges/prompts/<str:digest>", prompts.prompt_set, name="prompt-set"),
    path("judges/models", terms.terms, name="model-terms"),
    path("judges/models/save", terms.save, name="save-terms"),
    path("judges/models/<int:pk>/remove", terms.remove, name="remove-terms"),
    path("benchmarks/<slug:slug>/judgments", imports.imported_judgments, name="imported-judgments"),
    path("benchmarks/<slug:slug>/judgments/import", imports.import_judgments, name="import-judgments"),
    path("trajectories/<int:pk>/second-stage", second_stage.stage, name="second-stage"),
    path("trajectories/<int:pk>/second-stage/look", second_stage.look, name="look-second-stage"),
    path("trajectories/<int:pk>/second-stage/decide", second_stage.decide, name="decide-second-stage"),
    path("submissions/<int:pk>/judges", runs.judge_runs, name="judge-runs"),
    path("submissions/<int:pk>/judges/plan", runs.plan, name="plan-judge-run"),
    path("submissions/<int:pk>/judges/start", runs.start, name="start-judge-run"),
    path("judge-runs/<int:pk>", runs.judge_run, name="judge-run"),
    path("judge-runs/<int:pk>/standing", runs.standing, name="judge-run-standing"),
    path("judge-runs/<int:pk>/pause", runs.pause, name="pause-judge-run"),
    path("judge-runs/<int:pk>/resume", runs.resume, name="resume-judge-run"),
    path("judge-runs/<int:pk>/cancel", runs.cancel, name="cancel-judge-run"),
    path("judge-runs/<int:pk>/retry", runs.retry, name="retry-judge-run"),
    path("judgments/<int:pk>", judgments.judgment, name="judgment"),
    path("judgments/<int:pk>/calls", judgments.judgment_trace, name="judgment-trace"),
    path("judgments/<int:pk>/trace.json", judgments.trace_file, name="judgment-trace-file"),
    path("trajectories/<int:pk>/judgments", judgments.trajectory_judgments, name="trajectory-judgments"),
]
