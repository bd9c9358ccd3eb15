"""Submissions, trajectories, steps and their files."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterable
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from annotation.clock import CreatedAtField
from annotation.models.catalogue import Benchmark, Task
from annotation.protocol import MINIMUM_LABELS
from annotation.records import AttachmentKind


def new_seed() -> str:
    """Return a seed for the next draw of spot checks, which is secret until it is recorded with that draw."""
    return secrets.token_hex(16)


def seed_hash(seed: str) -> str:
    """Return the SHA-256 (hex) that is recorded before a draw, so that its seed cannot change afterwards."""
    return hashlib.sha256(seed.encode()).hexdigest()


class Agent(models.Model):
    name = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.name


class Submissions(models.Manager["Submission"]):
    """Leave the import report in the database: of a large submission it has megabytes, and only exports read it."""

    def get_queryset(self) -> models.QuerySet[Submission]:
        return super().get_queryset().defer("import_report")


class Submission(models.Model):
    """One agent's trajectories for one benchmark; attempts of the same agent are numbered.

    ``digest`` is the SHA-256 over the trajectories' digests: the same bytes uploaded twice are the same submission.
    With ``process_labels``, people may mark single steps. A submission for ``practice`` takes no labels: its
    trajectories have known answers and train its own annotators and those of the submissions that name it as their
    ``practice_set``. ``pass_mark`` is the share of right verdicts that a
    newcomer needs there before getting real work; null turns this off. With a ``second_stage``, annotators may see
    judgments after their own label; see `InformedRevision`. An ``audited`` submission came in an evidence bundle, with
    its labels and its chain of events; it is read-only. The submission that is a ``sample_of`` it has some or all of
    its trajectories, for new labels by people who have not seen the first ones. Nothing is changed in an archived one
    until it is restored. A deleted one stays archived, without trajectories: only its events are left.
    ``import_report`` is the report of the import that created the submission, as in its first event.
    ``organisation`` is who built the agent, if an entry of a benchmark states it; see `Affiliation`.
    """

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="submissions")
    organisation = models.CharField(max_length=200, blank=True, default="", db_default="")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="submissions")
    attempt = models.PositiveIntegerField(default=1)
    digest = models.CharField(max_length=64)
    protocol_version = models.PositiveSmallIntegerField(default=1)
    required_labels = models.PositiveSmallIntegerField(default=MINIMUM_LABELS)
    spot_check_rate = models.FloatField(default=0.10)
    spot_check_seed = models.CharField(max_length=64, default=new_seed)
    process_labels = models.BooleanField(default=False, db_default=False)
    practice = models.BooleanField(default=False, db_default=False)
    practice_set = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    pass_mark = models.FloatField(null=True, blank=True)
    second_stage = models.BooleanField(default=False, db_default=False)
    import_report = models.JSONField(null=True, blank=True)
    audited = models.BooleanField(default=False, db_default=False)
    sample_of = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True, related_name="sample")
    created_at = CreatedAtField()
    frozen_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects = Submissions()

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["benchmark", "agent", "attempt"], name="submission_attempt_once"),
            # A sample may have all trajectories, and then has the same bytes as the audited submission.
            models.UniqueConstraint(
                fields=["benchmark", "agent", "digest"],
                condition=Q(sample_of__isnull=True),
                name="submission_bytes_once",
            ),
            models.CheckConstraint(
                condition=Q(spot_check_rate__gte=0, spot_check_rate__lte=1),
                name="spot_check_rate_is_a_fraction",
            ),
            models.CheckConstraint(
                condition=Q(opened_at__isnull=True) | Q(frozen_at__isnull=False),
                name="opened_only_when_frozen",
            ),
            models.CheckConstraint(
                condition=Q(pass_mark__isnull=True) | Q(pass_mark__gte=0, pass_mark__lte=1),
                name="pass_mark_is_a_fraction",
            ),
            models.CheckConstraint(condition=Q(protocol_version__in=[1, 2]), name="protocol_version_known"),
        ]

    @property
    def asks_attempt(self) -> bool:
        """Return whether annotators do the task themselves before they judge: version 2 of the protocol."""
        return self.protocol_version >= 2

    @property
    def played_set(self) -> int | None:
        """Return the primary key of the practice set that its annotators answer: of itself if it is one."""
        return self.pk if self.practice else self.practice_set_id

    @property
    def next_seed(self) -> str:
        """Return the SHA-256 of the next draw's seed. An audited submission has only this hash, stored as its seed."""
        return self.spot_check_seed if self.audited else seed_hash(self.spot_check_seed)

    def open_reports(self) -> int:
        """Count what maintainers have to answer: reports, and questions about the guidelines."""
        reports = self.trajectories.filter(reports__isnull=False, reports__settled_at__isnull=True).order_by()
        questions = self.questions.filter(answered_at__isnull=True).order_by()
        return questions.values("pk").union(reports.values("reports__pk"), all=True).count()  # one query

    def __str__(self) -> str:
        suffix = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        return f"{self.agent.name}{suffix}"


class Trajectory(models.Model):
    """One agent's attempt at one task.

    Database triggers update ``open_slots`` when assignments are added or deleted. So the check constraint below rejects
    more assignments than ``required_labels``, from any code, and the queue can order by it.
    """

    submission = models.ForeignKey(Submission, on_delete=models.CASCADE, related_name="trajectories")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="trajectories")
    position = models.PositiveIntegerField()
    task_text = models.TextField(help_text="As the agent's files state it.")
    final_answer = models.TextField(null=True, blank=True)  # noqa: DJ001 - null is "none given", "" is an answer
    reference_length = models.PositiveIntegerField(null=True, blank=True)
    source_format = models.CharField(max_length=32)  # a name of `formats.registry`; choices would need migrations
    digest = models.CharField(max_length=64)
    warnings = models.JSONField(default=list)
    open_slots = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["position"]
        verbose_name_plural = "trajectories"
        constraints = [
            models.UniqueConstraint(fields=["submission", "task"], name="trajectory_once_per_task"),
            models.UniqueConstraint(fields=["submission", "position"], name="trajectory_position_once"),
            models.CheckConstraint(condition=Q(open_slots__gte=0), name="no_more_labels_than_required"),
        ]
        indexes = [
            # Serves `queue.find_candidates`: started trajectories first, in the order of the submission.
            models.Index(
                F("submission"),
                F("open_slots"),
                F("position"),
                condition=Q(open_slots__gt=0),
                name="trajectory_open",
            ),
        ]

    def files(self) -> models.QuerySet[Attachment]:
        """Return the attachments except cached pages, which the desk shows in their own place."""
        return self.attachments.exclude(kind=AttachmentKind.CACHED_PAGE)

    def __str__(self) -> str:
        return f"{self.task.external_id} of {self.submission}"


class Screenshot(models.Model):
    """An image, identified by the ``sha256`` of its original bytes. Width and height in pixels, size in bytes.

    ``damaged_at`` is the time of the check that found the file damaged or missing. An intact file resets it to null.
    """

    sha256 = models.CharField(max_length=64, unique=True)
    media_type = models.CharField(max_length=20)
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    size = models.PositiveBigIntegerField()
    damaged_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.sha256[:12]


class StoreCheck(models.Model):
    """A pass over all stored originals, in the order of their SHA-256; see `annotation.store_checks`.

    ``position`` is the last digest that was checked; ``files`` and ``size`` (bytes) count the files read, of ``total``
    files. ``problems`` are objects with the keys sha256 and kind ("damaged" or "missing"). ``heartbeat_at`` is null
    while no process works on the pass.
    """

    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    position = models.CharField(max_length=64, blank=True)
    total = models.PositiveIntegerField()
    files = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    problems = models.JSONField(default=list)

    class Meta:
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.files} of {self.total} files"


class Redaction(models.Model):
    """Covered parts of a screenshot in evidence bundles: ``boxes`` are [x, y, width, height] in its pixels.

    The newest ``revision`` applies; one without boxes removes the redaction. ``redacted`` is the SHA-256 of the covered
    image (a PNG of ``size`` bytes in the image store), empty without boxes. People in the review and judges still see
    the original, and its digest (``original``, SHA-256) stays in the records. If the redaction came in an evidence
    bundle, the original has no `Screenshot`.
    """

    submission = models.ForeignKey(Submission, on_delete=models.PROTECT, related_name="redactions")
    original = models.CharField(max_length=64)
    revision = models.PositiveIntegerField(default=1)
    boxes = models.JSONField()
    reason = models.TextField()
    redacted = models.CharField(max_length=64, blank=True)
    size = models.PositiveBigIntegerField(default=0)
    redacted_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    redacted_at = models.DateTimeField()

    class Meta:
        ordering = ["revision"]
        constraints = [
            models.UniqueConstraint(fields=["submission", "original", "revision"], name="redaction_revision_once"),
            models.CheckConstraint(condition=~Q(original=""), name="redaction_of_a_picture"),
            models.CheckConstraint(condition=~Q(reason=""), name="redaction_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{len(self.boxes)} boxes"


class PictureChange(models.Model):
    """Change of a screenshot from the previous one: ``boxes`` are [x, y, width, height] in pixels of ``after``.

    Computed on first use, and never again because screenshots never change. ``share`` is the changed part of the
    screenshot, 0 to 1. Null boxes: the two cannot be compared (their sizes differ too much).
    """

    before = models.ForeignKey(Screenshot, on_delete=models.CASCADE, related_name="+")
    after = models.ForeignKey(Screenshot, on_delete=models.CASCADE, related_name="+")
    boxes = models.JSONField(null=True)
    share = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["before", "after"], name="change_once_per_pair")]

    def __str__(self) -> str:
        return f"{self.share}"


class Step(models.Model):
    """Observation and action number ``index``, from 0. Clicks are in pixels of the agent's viewport.

    ``withheld`` describes a screenshot that an evidence bundle names but does not contain: sha256, size, width, height
    and media_type, as stated there. ``screenshot`` is then the covered image that replaces it, or null.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="steps")
    index = models.PositiveIntegerField()
    action = models.TextField(blank=True)
    thought = models.TextField(null=True, blank=True)  # noqa: DJ001 - null is "none recorded"
    url = models.TextField(blank=True)
    status = models.CharField(max_length=10, blank=True)
    screenshot = models.ForeignKey(Screenshot, on_delete=models.PROTECT, null=True, blank=True, related_name="steps")
    withheld = models.JSONField(null=True, blank=True)
    file_name = models.CharField(max_length=255, blank=True)
    click_x = models.FloatField(null=True, blank=True)
    click_y = models.FloatField(null=True, blank=True)
    warnings = models.JSONField(default=list)

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["trajectory", "index"], name="step_index_once")]

    def __str__(self) -> str:
        return f"step {self.index}"


class Attachment(models.Model):
    """A file of a trajectory other than its screenshots, identified by its content.

    If it is ``withheld``, an evidence bundle names it but does not contain it.
    """

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="attachments")
    kind = models.CharField(max_length=20, choices=[(k.value, k.value) for k in AttachmentKind])
    name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveBigIntegerField()
    withheld = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trajectory", "name"], name="attachment_name_once")]
        # Serves store_checks, in the order of digests, and screenshots.prune, for each stored file.
        indexes = [models.Index(fields=["sha256"], name="attachment_sha256")]

    def __str__(self) -> str:
        return self.name


class WorkerJob(models.Model):
    """Work that one worker at a time does in the background, and its progress. See `annotation.arrivals`.

    ``tries`` counts how often a worker started, and ``done`` of ``total`` parts are done. Messages name the ``thing``
    that it is about, the ``command`` that does the same, and how to ``repeat`` it.
    """

    thing: ClassVar[str]
    command: ClassVar[str]
    repeat: ClassVar[str]

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = CreatedAtField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0, db_default=0)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["-created_at"]

    @property
    def stage(self) -> str:
        if self.finished_at is not None:
            return "finished"
        return "running" if self.started_at is not None else "waiting"

    @classmethod
    def stored_names(cls) -> Iterable[str]:
        """Return the names in the store of the files of all rows; a file may have been deleted when its row ended."""
        return []


class Arrival(WorkerJob):
    """A file uploaded through the page or the API: its sender and its place in the store.

    ``stored_as`` is its name in the store. The file is stored in ``folder``, with ``suffix``.
    """

    folder: ClassVar[str]
    suffix: ClassVar[str] = ""

    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file_name = models.CharField(max_length=255)
    stored_as = models.CharField(max_length=255)

    class Meta(WorkerJob.Meta):
        abstract = True

    @classmethod
    def stored_names(cls) -> Iterable[str]:
        return cls._default_manager.exclude(stored_as="").values_list("stored_as", flat=True)

    def __str__(self) -> str:
        return self.file_name


class PackageOptions(models.Model):
    """Options that the sender of a package chooses for its import."""

    benchmark = models.ForeignKey(Benchmark, on_delete=models.PROTECT, related_name="+")
    agent_name = models.CharField(max_length=200)
    keep_valid = models.BooleanField(default=False)
    dry_run = models.BooleanField(default=False)
    protocol_version = models.PositiveSmallIntegerField(default=1, db_default=1)
    process_labels = models.BooleanField(default=False, db_default=False)
    create_tasks = models.BooleanField(default=False, db_default=False)

    class Meta:
        abstract = True


class Upload(Arrival, PackageOptions):
    """A package uploaded through the page or the API, and its report after it was read.

    ``preview`` is the first trajectory of a check; see `annotation.previews`. The package is stored as one file, or in
    parts; see `ResumableUpload`.
    """

    thing, command, folder, repeat = "package", "import_submission", "uploads", "Upload the package again."

    preview = models.JSONField(null=True, blank=True)
    report = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    submission = models.ForeignKey(Submission, on_delete=models.SET_NULL, null=True, blank=True, related_name="uploads")

    @classmethod
    def stored_names(cls) -> Iterable[str]:
        whole = cls.objects.exclude(stored_as="").exclude(stored_as__startswith=ResumableUpload.folder)
        yield from whole.values_list("stored_as", flat=True)
        yield from (part.stored_as for part in UploadPart.objects.iterator())


class ResumableUpload(PackageOptions):
    """A package that arrives in parts: ``offset`` of ``length`` bytes so far. See `annotation.resumable`.

    With its last byte it becomes the `Upload` of the same key. The row stays until ``expires_at`` to answer a client
    that missed the last response. ``metadata`` is the header of the client, which gets it back.
    """

    folder = "upload-parts"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    created_at = CreatedAtField()
    expires_at = models.DateTimeField()
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file_name = models.CharField(max_length=255)
    metadata = models.TextField(blank=True)
    length = models.PositiveBigIntegerField()
    offset = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.CheckConstraint(condition=Q(offset__lte=F("length")), name="no_more_bytes_than_length")]

    @property
    def stored_as(self) -> str:
        """Return the folder of its parts in the store."""
        return f"{self.folder}/{self.pk}"

    def __str__(self) -> str:
        return f"{self.offset} of {self.length} bytes of {self.file_name}"


class UploadPart(models.Model):
    """The bytes of one request, from ``start``; ``name`` is its file in the folder of the upload.

    Two requests for the same bytes write different files, of which one is counted.
    """

    upload = models.ForeignKey(ResumableUpload, on_delete=models.CASCADE, related_name="parts")
    start = models.PositiveBigIntegerField()
    size = models.PositiveBigIntegerField()
    name = models.CharField(max_length=64)

    class Meta:
        ordering = ["start"]
        constraints = [models.UniqueConstraint(fields=["upload", "start"], name="part_once_per_start")]

    @property
    def stored_as(self) -> str:
        return f"{ResumableUpload.folder}/{self.upload_id}/{self.name}"

    def __str__(self) -> str:
        return f"{self.size} bytes from {self.start}"
