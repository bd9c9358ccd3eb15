"""Batches of one worker: submit what its items have collected, poll open batches, and store their results.

Every step can be interrupted or repeated, by this worker or another: a batch is in the database before it is submitted,
and has ended there after its last result is stored. Before a batch is submitted again, the endpoint is asked whether it
has it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, TypeVar, cast

from judges.llm import BudgetSpent
from judges.llm.batch import ENDED, NO_BATCHES, UNANSWERED, BatchFailed, BatchState, Result
from judges.llm.collecting import BatchClient, CallFile
from judges.models import JudgeRun, ModelBatch, ModelTerms
from judges.working import batches, leases
from judges.working.batches import BatchStopped
from judges.working.database import DatabaseThread

AT_ONCE = 200  # results in one transaction
FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0  # seconds between attempts to submit a batch
MOST_READS = 60  # polls of an ended batch without all of its results, in about an hour, before the run stops
LOOKS = 3  # for a batch after a submission without an answer, before it is submitted again
NOT_SUBMITTED = "A batch of calls could not be submitted."  # reasons in events, which are part of evidence bundles
NOT_READ = "The results of a batch of calls could not be read."

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Waves:
    """Batches of a run, as one worker sees them. ``is_stopping``: collect no more calls."""

    database: DatabaseThread
    run: JudgeRun
    terms: ModelTerms | None
    attempts: int
    worker: str
    client: BatchClient
    is_stopping: bool = False
    submitting: list[str] = field(default_factory=list)  # the tokens of the batches that this worker submits now
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep

    def stop(self) -> None:
        self.is_stopping = True
        self.client.notify()

    async def keep(self) -> None:
        if self.submitting:
            await self.database.run(batches.keep_alive, list(self.submitting))

    # --- submission --------------------------------------------------------------------------------------------------

    async def submit(self) -> BudgetSpent | None:
        """Submit the collected calls of our items; return why some were left out, or None.

        Raises BatchStopped.
        """
        if (problem := self.client.problem) is not None:
            raise BatchStopped(
                f"The calls of a batch cannot be written to {tempfile.gettempdir()}: {problem.strerror or problem}. "
                "Free some space there (or set TMPDIR), and resume the run.",
                NOT_SUBMITTED,
            )
        wanted = {secrets.token_hex(16): file for file in self.client.files if file.calls}
        calls = [(token, file.calls) for token, file in wanted.items()]
        committed = await self.database.run(batches.commit, self.run.pk, self.worker, self.terms, calls)
        self.submitting = list(committed.names)
        try:
            while self.submitting:
                token = self.submitting[0]
                await self._submit_file(token, wanted[token], committed.names[token])
                self.submitting.remove(token)
        finally:
            self.submitting = []
        return committed.refused

    async def _submit_file(self, token: str, calls: CallFile, names: set[str]) -> None:
        try:
            calls.keep_only(names)
            await self._create(token, calls.file)
        except (BatchFailed, OSError) as failed:
            for each in self.submitting:
                await self.database.run(batches.discard, each)
            raise self._describe_refusal(failed) from failed

    async def _create(self, token: str, file: IO[bytes]) -> None:
        file_id = await self._repeat(partial(self.client.api.upload, file))
        for attempt in range(self.attempts):
            # During the upload, another worker may have taken over and removed this batch.
            if not await self.database.run(batches.prepare_submission, token, file_id):
                return
            try:
                state = await self.client.api.create(file_id, token)
            except BatchFailed as failed:
                found = await self._look_for(token, file_id) if failed.uncertain else None
                if found is None and (not failed.again or attempt + 1 >= self.attempts):
                    raise
                if found is None:
                    await self._pause(attempt)
                    continue
                state = found
            if not await self.database.run(batches.store_id, token, state.id):
                await self._cancel(state.id)
            return

    async def _cancel(self, batch_id: str) -> None:
        """Cancel a batch that was submitted too late. If that fails, the others are still submitted."""
        try:
            await self._repeat(partial(self.client.api.cancel, batch_id))
        except BatchFailed as failed:
            logger.error("Run %s: batch %s is superfluous and cannot be cancelled: %s", self.run.pk, batch_id, failed)

    async def _look_for(self, token: str, file_id: str) -> BatchState | None:
        """Return the batch whose submission had no answer, if the endpoint has it.

        If the endpoint does not answer, the batch stays as it is: it may have been submitted.
        """
        created = await self.database.run(_load_created, token)
        try:
            for attempt in range(LOOKS):
                await self._pause(attempt)
                found = await self._repeat(partial(self.client.api.find, token, file_id, created))
                if found is not None:
                    return found
        except BatchFailed as failed:
            raise BatchStopped(
                f"It is not known whether a batch was submitted. {failed} Resume the run to find out.", NOT_SUBMITTED
            ) from failed
        return None

    async def _repeat(self, act: Callable[[], Awaitable[T]]) -> T:
        for attempt in range(self.attempts):
            try:
                return await act()
            except BatchFailed as failed:
                if not failed.again or attempt + 1 >= self.attempts:
                    raise
                await self._pause(attempt)
        raise AssertionError

    async def _pause(self, attempt: int) -> None:
        await self.sleep(min(LAST_PAUSE, FIRST_PAUSE * 2**attempt))

    def _describe_refusal(self, failed: BatchFailed | OSError) -> BatchStopped:
        if isinstance(failed, BatchFailed) and failed.status in NO_BATCHES:
            return BatchStopped(
                f"The endpoint {self.run.judge.endpoint} does not support batches: {failed} Cancel this run, "
                "and start a standard run.",
                NOT_SUBMITTED,
            )
        return BatchStopped(f"A batch could not be submitted. {failed} Resume the run to try again.", NOT_SUBMITTED)

    # --- results -----------------------------------------------------------------------------------------------------

    async def poll(self) -> None:
        """Poll the batches of the run that are due, and store the results of those that have ended.

        Raises BatchStopped.
        """
        for batch in await self.database.run(batches.take_over, self.run.pk):
            await self._resolve(batch)
        for batch in await self.database.run(batches.claim_polls, self.run.pk):
            try:
                await self._poll(batch)
            except BatchFailed as failed:
                if failed.again:
                    logger.warning("Run %s: batch %s will be polled again: %s", self.run.pk, batch.provider_id, failed)
                    continue
                if failed.status in NO_BATCHES and await self._is_cancelled():
                    await self.database.run(batches.end, batch.pk, "lost", "The endpoint has lost the batch.")
                    continue
                raise BatchStopped(
                    f"The batch {batch.provider_id} cannot be read. {failed} Resume the run to try again.", NOT_READ
                ) from failed
            except OSError as failed:
                raise BatchStopped(
                    f"The results of a batch cannot be written to {tempfile.gettempdir()}: "
                    f"{failed.strerror or failed}. Free some space there (or set TMPDIR), and resume the run.",
                    NOT_READ,
                ) from failed

    async def measure_wait(self) -> float | None:
        return await self.database.run(batches.measure_wait, self.run.pk)

    async def _resolve(self, batch: ModelBatch) -> None:
        """Find out whether a dead worker's batch was submitted."""
        created = batch.created_at.timestamp()
        try:
            found = await self.client.api.find(batch.token, batch.file_id, created)
        except BatchFailed as failed:
            if failed.again:
                logger.warning("Run %s: a batch will be looked for again: %s", self.run.pk, failed)
                return
            raise self._describe_refusal(failed) from failed
        if found is None:
            await self.database.run(batches.discard_unsubmitted, batch)
        else:
            await self.database.run(batches.store_id, batch.token, found.id)

    async def _poll(self, batch: ModelBatch) -> None:
        state = await self.client.api.get(batch.provider_id)
        if state.status in UNANSWERED and await self._is_cancelled():
            await self.client.api.cancel(batch.provider_id)
        if state.status == "failed" and not state.output_file:
            await self.database.run(batches.discard, batch.token)
            why = " ".join(state.errors[:3])[:300] or "It states no reason."
            raise BatchStopped(
                f"The endpoint {self.run.judge.endpoint} refused a batch: {why} Its calls were not made. Resume the "
                "run to submit them again, or cancel it and start a standard run.",
                NOT_SUBMITTED,
            )
        if state.status in ENDED:
            try:
                await self._read_results(batch, state)
            except BatchFailed as failed:
                polls = await self.database.run(batches.count_reads, batch.pk, state.status)
                if not failed.again or polls < MOST_READS:
                    raise
                if not await self._is_cancelled():
                    raise BatchFailed(f"{failed} That did not change in {polls} polls.", again=False) from failed
            await self.database.run(batches.end, batch.pk, state.status, f"The batch has ended: {state.status}.")

    async def _read_results(self, batch: ModelBatch, state: BatchState) -> None:
        """Store the results of an ended batch; raise BatchFailed unless they are complete."""
        for file_id in filter(None, (state.output_file, state.error_file)):
            await self._store(batch, file_id)
        stored = await self.database.run(batches.count_results, batch.pk)
        expected = state.answered or 0
        if stored < expected:
            raise BatchFailed(f"Its files have results of {stored:,} of our requests, not of {expected:,} as stated.")
        if state.status == "completed" and not stored:
            raise BatchFailed("It is completed, but has no result of our requests.")

    async def _is_cancelled(self) -> bool:
        return (await self.database.run(leases.load_state, self.run.pk))[0] == "cancelled"

    async def _store(self, batch: ModelBatch, file_id: str) -> None:
        with cast("IO[bytes]", tempfile.TemporaryFile()) as file:
            await self.client.api.download(file_id, file)
            results: list[Result] = []
            for result in self.client.api.read_results(file):
                results.append(result)
                if len(results) >= AT_ONCE:
                    await self.database.run(batches.store_results, batch.pk, self.terms, results)
                    results = []
            await self.database.run(batches.store_results, batch.pk, self.terms, results)


def _load_created(token: str) -> float:
    return ModelBatch.objects.values_list("created_at", flat=True).get(token=token).timestamp()
