from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evaluations.jobs import continue_alignment  # noqa: PLC0415 - needs the models
        from evaluations.robustness import store_finished  # noqa: PLC0415 - needs the models
        from judges.signals import run_finished  # noqa: PLC0415 - as above

        run_finished.connect(store_finished)
        run_finished.connect(continue_alignment)
