"""Judges, their runs, their judgments, and every model call that was made for a judgment.

The rows define the work, not the broker: a run item without a judgment is open, and exactly one worker claims it by a
conditional update.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.clock import CreatedAtField
from annotation.models import Agent, Submission, Task, Trajectory
from annotation.models import triggers as annotation_triggers
from annotation.models.events import digest
from annotation.records import Verdict
from judges.alignment_models import (  # noqa: F401 - these are of these models, too
    Alignment,
    AlignmentRun,
    AlignmentSplit,
    AlignmentTask,
    AlignmentVersion,
    DisagreementMark,
    LookAtTest,
    Part,
)
from judges.model_batches import ModelBatch, Service
from judges.model_terms import ModelTerms  # noqa: F401 - one of these models
from judges.scorer import REGISTRY, Kind

VERDICTS = [(v.value, v.name.lower().replace("_", " ")) for v in Verdict]

annotation_triggers.APPEND_ONLY |= {
    "judges_judgment": "",
    "judges_expectation": "",
    "judges_judge": "OLD.frozen_at IS NOT NULL",  # until its first run it may still be changed, or deleted
    "judges_robustnesscard": "",
}


# An imported judgment may be linked once to a trajectory that was imported later; it then gets its step numbers.
annotation_triggers.FILLED_ONCE["judges_judgment"] = ("trajectory_id", "task_id", "evidence")


class Expectation(models.Model):
    """Expectation of a task that a judge checks: network checks or a rubric, as YAML.

    The newest version is in force; an empty ``text`` withdraws the expectation. Versions never change, since judgments
    name the ``digest`` (SHA-256 of the text) that they used. ``why`` is the reason for the change.
    """

    class Kind(models.TextChoices):
        NETWORK_CHECKS = "network_checks", "network checks"
        RUBRIC = "rubric", "rubric"

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="expectations")
    kind = models.CharField(max_length=20, choices=Kind)
    version = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    digest = models.CharField(max_length=64)
    why = models.CharField(max_length=500, blank=True)
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    written_at = CreatedAtField()

    class Meta:
        ordering = ["task", "kind", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["task", "kind", "version"], name="expectation_version_once"),
            models.CheckConstraint(condition=Q(kind__in=["network_checks", "rubric"]), name="expectation_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.task.external_id}, version {self.version}"


class PromptSet(models.Model):
    """Prompts that a maintainer loaded from files; built-in prompts are files and have no row.

    ``texts`` maps ``<stage>.<part>`` to a template, ``digest`` is the SHA-256 of its canonical JSON, ``source`` is
    the origin of the texts.
    """

    name = models.SlugField(max_length=64)
    digest = models.CharField(max_length=64)
    texts = models.JSONField()
    source = models.CharField(max_length=500, blank=True)
    loaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    loaded_at = CreatedAtField()

    class Meta:
        ordering = ["name", "-loaded_at"]
        constraints = [models.UniqueConstraint(fields=["name", "digest"], name="prompt_set_once")]

    def __str__(self) -> str:
        return f"{self.name} {self.digest[:8]}"


class OwnJudges(models.Manager["Judge"]):
    """The judges of this instance, without those from evidence bundles, which are never run or listed here."""

    def get_queryset(self) -> models.QuerySet[Judge]:
        return super().get_queryset().filter(came_with=None)


class Judge(models.Model):
    """A scorer with all settings that decide its judgments; frozen at its first run, and then never changed.

    ``prompts`` names a prompt set (``webjudge/1`` is built-in, ``loaded/<name>@<digest>`` is a loaded one) and
    ``prompts_digest`` is the SHA-256 of its texts. ``parameters`` are those of the scorer, ``generation`` those of
    the model client (`llm.Generation`). ``endpoint`` names an endpoint of the settings, never a key. ``concurrency``,
    ``timeout`` (seconds) and ``attempts`` are its `llm.Patience`. A judge of the scorer ``imported`` only has
    imported judgments.

    A judge from an evidence bundle belongs to the bundle's submission, ``came_with``. Its ``fingerprint`` is the
    ``stated`` one, and it may share its name with a judge of this instance. Code that lists, names or runs judges must
    use ``own``.
    """

    name = models.SlugField(max_length=64)
    version = models.PositiveIntegerField(default=1)
    description = models.CharField(max_length=500, blank=True)
    scorer = models.CharField(max_length=40)
    scorer_version = models.PositiveIntegerField(default=1)
    endpoint = models.CharField(max_length=40, default="default")
    model = models.CharField(max_length=200, blank=True)
    prompts = models.CharField(max_length=100, blank=True)
    prompts_digest = models.CharField(max_length=64, blank=True)
    parameters = models.JSONField(default=dict)
    generation = models.JSONField(default=dict)
    concurrency = models.PositiveIntegerField(default=16)
    timeout = models.FloatField(default=120.0)
    attempts = models.PositiveIntegerField(default=6)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = CreatedAtField()
    frozen_at = models.DateTimeField(null=True, blank=True)
    came_with = models.ForeignKey(
        Submission, on_delete=models.PROTECT, null=True, blank=True, related_name="bundled_judges"
    )
    stated = models.CharField(max_length=64, blank=True, default="", db_default="")

    objects: models.Manager[Judge] = models.Manager()  # first, so it is Django's default: it hides nothing
    own = OwnJudges()

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(
                fields=["name", "version"], condition=Q(came_with__isnull=True), name="judge_version_once"
            ),
            models.UniqueConstraint(
                fields=["came_with", "name", "version"],
                condition=Q(came_with__isnull=False),
                name="bundled_judge_version_once",
            ),
            models.CheckConstraint(
                condition=Q(came_with__isnull=True, stated="") | (Q(came_with__isnull=False) & ~Q(stated="")),
                name="bundled_judge_as_stated",
            ),
        ]

    @property
    def kind(self) -> Kind | None:
        """Return the kind; None for imported judges, and for scorers that this version does not have."""
        return REGISTRY.get(self.scorer)

    @property
    def asks_model(self) -> bool:
        return self.kind is None or self.kind.asks

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256 of scorer, its version, model, prompts and all parameters; stored with every judgment.

        The endpoint is not included: the same model at another address is the same judge.
        """
        return self.stated or digest(
            {
                "scorer": self.scorer,
                "scorer_version": self.scorer_version,
                "model": self.model,
                "prompts": self.prompts_digest,
                "parameters": self.parameters,
                "generation": self.generation,
            }
        )

    def __str__(self) -> str:
        return self.name if self.version == 1 else f"{self.name}@{self.version}"


class JudgeRun(models.Model):
    """A run of one judge over selected trajectories of a submission, ``repetitions`` times each.

    ``selection`` is the selection as requested; the items are its result. A ``test`` run tries a judge on a trajectory
    and is excluded from results. A ``fresh`` run uses no reply of an earlier run. ``max_cost`` is in US dollars;
    ``estimate`` is the plan (`planning.Plan`). ``stopped`` is the reason if a run waits without being paused.
    ``called_at`` is the time of the last message to workers, whether it arrived or not. ``retried_at`` is the time of
    the single automatic retry of failed items, when no other item is left. ``service`` says how the endpoint serves
    the calls.

    ``robustness`` is set for a ``test`` run that attacks the judge (`lab`): the ``version`` of the operators, the
    ``seed``, the names of its ``operators``, and how many trajectories each of them left out, by reason. Repetition 1
    of a trajectory is the original, and repetition 2 the change by the first operator.
    """

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="judge_runs")
    selection = models.JSONField(default=dict)
    repetitions = models.PositiveIntegerField(default=1)
    test = models.BooleanField(default=False)
    fresh = models.BooleanField(default=False)
    service = models.CharField(
        max_length=10, blank=True, choices=Service, default=Service.STANDARD, db_default=Service.STANDARD
    )
    max_cost = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True)
    estimate = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = CreatedAtField()
    started_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    stopped = models.CharField(max_length=500, blank=True)
    called_at = models.DateTimeField(null=True, blank=True)
    retried_at = models.DateTimeField(null=True, blank=True)
    robustness = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            # Read by the reconciler every few seconds (leases.claim_idle_runs).
            models.Index(
                F("id"), condition=Q(finished_at__isnull=True, cancelled_at__isnull=True), name="judge_run_open"
            ),
        ]

    @property
    def state(self) -> str:
        """Return the first that applies: cancelled, finished, paused, stopped, waiting (not started) or running."""
        states = {
            "cancelled": self.cancelled_at,
            "finished": self.finished_at,
            "paused": self.paused_at,
            "stopped": self.stopped,
            "waiting": self.started_at is None,
        }
        return next((name for name, holds in states.items() if holds), "running")

    @property
    def has_one_worker(self) -> bool:
        """Return True if a single worker is called: it collects all calls of a batch, and a call that several changes
        of a trajectory share is paid for once."""
        return self.service == Service.BATCH or self.robustness is not None

    @property
    def is_outdated(self) -> bool:
        """Return True if the run attacks its judge, and the submission was reopened since it was started."""
        frozen_at = self.submission.frozen_at
        return self.robustness is not None and (frozen_at is None or self.created_at < frozen_at)

    def __str__(self) -> str:
        return f"run {self.pk} of {self.judge}"


class RunItem(models.Model):
    """One trajectory of a run, for the ``repetition``-th time (from 1): waiting, taken, failed or done.

    Waiting: no ``taken_at``. Taken: ``worker`` works on it, or is lost if ``heartbeat_at`` is old. Done: ``done_at``,
    and there is a judgment. Failed: ``failed_at`` with the ``error`` of the last attempt; a retry makes it wait again.
    ``passing``: the error may be temporary, so the run retries the item.
    """

    run = models.ForeignKey(JudgeRun, on_delete=models.CASCADE, related_name="items")
    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="+")
    repetition = models.PositiveIntegerField(default=1)
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=40, blank=True)
    taken_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    passing = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "trajectory", "repetition"], name="run_item_once"),
            models.CheckConstraint(
                condition=Q(done_at__isnull=True) | Q(failed_at__isnull=True), name="run_item_done_or_failed"
            ),
        ]
        indexes = [
            # Read by leases.claim: the open items of a run, in order.
            models.Index(
                F("run"),
                F("id"),
                condition=Q(done_at__isnull=True, failed_at__isnull=True),
                name="run_item_to_do",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of run {self.run_id}"


class Judgment(models.Model):
    """A judge's result for one trajectory; never changed, except that an imported one may be linked to a trajectory.

    Without a usable reply the ``verdict`` is null and ``unscored`` says why. ``evidence`` is `scorer.Score.evidence`
    as JSON. ``item`` is null for imported judgments: they name task and agent, and the trajectory if there is one;
    ``imported`` has all other data of their file. ``tokens`` and ``cost`` (US dollars; null if a price was unknown)
    are the totals of the calls of this judgment, including cache hits.
    ``status_not_stated`` marks a verdict that upstream's rules give to a reply without one.
    """

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="judgments")
    fingerprint = models.CharField(max_length=64)
    item = models.OneToOneField(RunItem, on_delete=models.PROTECT, null=True, blank=True, related_name="judgment")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    trajectory = models.ForeignKey(
        Trajectory, on_delete=models.PROTECT, null=True, blank=True, related_name="judgments"
    )
    repetition = models.PositiveIntegerField(default=1)
    verdict = models.PositiveSmallIntegerField(null=True, blank=True, choices=VERDICTS)
    unscored = models.CharField(max_length=500, blank=True)
    score = models.FloatField(null=True, blank=True)
    explanation = models.TextField(blank=True)
    evidence = models.JSONField(default=dict)
    response = models.TextField(blank=True)
    model = models.CharField(max_length=200, blank=True)
    tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, blank=True)
    imported = models.JSONField(null=True, blank=True)
    status_not_stated = models.BooleanField(default=False, db_default=False)
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["-made_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__isnull=True) | Q(verdict__in=[v.value for v in Verdict]),
                name="judgment_verdict_known",
            ),
            models.CheckConstraint(
                condition=Q(verdict__isnull=True) ^ Q(unscored=""), name="judgment_verdict_or_unscored"
            ),
            models.CheckConstraint(
                condition=Q(item__isnull=True) ^ Q(imported__isnull=True), name="judgment_made_here_or_imported"
            ),
            models.UniqueConstraint(
                fields=["judge", "task", "agent", "repetition"],
                condition=Q(item__isnull=True),
                name="imported_judgment_once",
            ),
        ]

    def __str__(self) -> str:
        return f"judgment {self.pk}"


class RobustnessCard(models.Model):
    """The report of a finished run with ``robustness``, computed from its judgments; never changed.

    ``operators_version`` is `lab.VERSION` at the time of the run, ``fingerprint`` that of the judge. ``report`` is
    `evaluations.robustness.Report` as JSON.
    """

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="robustness_cards")
    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="+")
    run = models.OneToOneField(JudgeRun, on_delete=models.PROTECT, related_name="card")
    fingerprint = models.CharField(max_length=64)
    operators_version = models.PositiveIntegerField()
    seed = models.PositiveBigIntegerField()
    report = models.JSONField()
    made_at = CreatedAtField()

    class Meta:
        ordering = ["-made_at", "-pk"]

    def __str__(self) -> str:
        return f"robustness of {self.judge}"


class ModelCall(models.Model):
    """One call of a model for a run item: the trace, and the cache of replies.

    ``key`` is the SHA-256 of the endpoint and the request body with images by digest, in rows of earlier versions of
    the body alone; ``sample`` distinguishes repetitions of a call. ``request`` and ``reply`` (the raw body) are
    null if ``hit_of`` names the call that paid for them, and after pruning. A call without a reply has an ``error``, or
    waits in its ``batch`` until that has ended; its ``cost`` is then an estimate. If it failed there, ``reply`` is the
    line of the result.
    Times in milliseconds, ``cost`` in US dollars. ``number`` counts the calls of an attempt, so that a row can be
    written again after an uncertain commit.
    """

    item = models.ForeignKey(RunItem, on_delete=models.CASCADE, db_index=False, related_name="calls")
    attempt = models.PositiveIntegerField()
    number = models.PositiveIntegerField(null=True, blank=True)
    stage = models.CharField(max_length=40)
    step = models.PositiveIntegerField(null=True, blank=True)
    key = models.CharField(max_length=64)
    sample = models.CharField(max_length=40, default="1")
    request = models.JSONField(null=True, blank=True)
    reply = models.TextField(null=True, blank=True)  # noqa: DJ001 - null is "none", "" would be an empty body
    hit_of = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="hits")
    hit = models.BooleanField(default=False)
    model = models.CharField(max_length=200, blank=True)
    finish = models.CharField(max_length=40, blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    reasoning_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, blank=True)
    latency = models.PositiveIntegerField(null=True, blank=True)
    retries = models.PositiveSmallIntegerField(default=0)
    error = models.TextField(blank=True)
    pruned_at = models.DateTimeField(null=True, blank=True)
    batch = models.ForeignKey(
        ModelBatch, on_delete=models.SET_NULL, null=True, blank=True, db_index=False, related_name="calls"
    )
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["item", "attempt", "number"], name="model_call_once")]
        indexes = [
            # Read by call_log.look_up: the reply of an earlier call with the same request.
            models.Index(F("key"), F("sample"), condition=Q(reply__isnull=False), name="model_call_reply"),
            # Read by runs.load_progress and call_log.sum_cost: the sums of a run, without its requests and replies.
            models.Index(fields=["item", "hit", "cost", "prompt_tokens", "completion_tokens"], name="model_call_paid"),
            # Read when the results of a batch are stored (batches.store_results).
            models.Index(F("batch"), F("item"), condition=Q(batch__isnull=False), name="model_call_batch"),
        ]

    def __str__(self) -> str:
        return f"{self.stage} call {self.pk}"


class EndpointAddress(models.Model):
    """The address of an endpoint when replies were first stored by endpoint.

    Older replies belong to the endpoint of their judge, and are valid for this address only.
    """

    name = models.CharField(max_length=40, unique=True)
    address = models.TextField()

    def __str__(self) -> str:
        return f"{self.name} at {self.address}"


class RateWindow(models.Model):
    """The rest of an endpoint's limit per minute, shared by all workers.

    ``name`` is ``<endpoint>:<model>:requests`` or ``...:tokens``; ``left`` may be negative after a call that was
    larger than estimated.
    """

    name = models.CharField(max_length=300, unique=True)
    left = models.FloatField()
    at = models.FloatField(help_text="Unix time of `left`, in seconds.")

    def __str__(self) -> str:
        return self.name
