"""The model client: what is sent, what is kept, what is never paid twice, and who is served first."""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import json
from decimal import Decimal
from typing import Any

import pytest

from judges.llm import BudgetSpent, CallFailed, Generation, ImageRef, Outcome, Patience, Prompt, SentImage
from judges.llm import client as llm_client
from judges.tests.builders import Fake, FolderImages, MemoryCallLog, OpenGate
from judges.tests.clients import FITS, SCHEMA, Desk, prompt


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "FIRST_WAIT", 0.01)


def sent(fake: Fake) -> list[dict[str, Any]]:
    return [json.loads(body) for body in fake.counts()["bodies"]]


def pictures_of(images: FolderImages, count: int, size: int) -> list[SentImage]:
    return [SentImage(images.add(bytes([n, n // 256]) * (size // 2))) for n in range(count)]


# --- What is sent -----------------------------------------------------------------------------------------------


def test_texts_and_pictures_are_sent_in_order_with_the_settings_of_the_judge(fake: Fake) -> None:
    fake.says({"reply": "ok"}, record=True)
    desk = Desk(fake, Generation(temperature=0.5, max_tokens=99, seed=7), model="local-model")
    one, two = desk.images.add(b"\xff\xd8 one"), desk.images.add(b"\xff\xd8 two")
    asked = Prompt("Be strict.", (("Look:", SentImage(one), "then", SentImage(two, "image/png", "")), ("And?",)))
    desk.run(lambda desk: desk.client.asker(desk.call_log, 0).ask(asked, stage="verdict"))
    [body] = sent(fake)
    settings = {name: value for name, value in body.items() if name != "messages"}
    assert settings == {"model": "local-model", "max_tokens": 99, "temperature": 0.5, "seed": 7}
    assert body["messages"] == [
        {"role": "system", "content": "Be strict."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                {"type": "image_url", "image_url": {"url": "data:image", "detail": "high"}},
                {"type": "text", "text": "then"},
                {"type": "image_url", "image_url": {"url": "data:image"}},
            ],
        },
        {"role": "user", "content": "And?"},
    ]


def test_a_picture_arrives_as_the_very_bytes_of_its_jpeg_under_the_media_type_of_the_prompt(fake: Fake) -> None:
    """The rule of the fake is the data URL itself: without these bytes it would not fit."""
    data = bytes(range(256)) * 5 + b"\x00"
    url = "data:image/png;base64," + base64.b64encode(data).decode()
    fake.says({"match": [url, 'ünïcode "quoted" </script>\n'], "reply": "seen"}, {"status": 400})
    desk = Desk(fake)
    picture = SentImage(desk.images.add(data), "image/png")
    assert desk.ask(picture, 'ünïcode "quoted" </script>\n', picture).text == "seen"


def test_the_trace_has_digests_in_place_of_pictures_and_the_key_is_its_hash_with_the_endpoint(fake: Fake) -> None:
    desk = Desk(fake)
    data = b"\xff\xd8 a picture"
    image = desk.images.add(data)
    desk.ask("Look:", SentImage(image))
    [kept] = desk.call_log.outcomes
    part = kept.call.request["messages"][1]["content"][1]["image_url"]
    digest = hashlib.sha256(data).hexdigest()
    assert part == {"sha256": digest, "screenshot": image.digest, "media_type": "image/jpeg", "detail": "high"}
    request = json.dumps(kept.call.request, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert kept.call.former_key == hashlib.sha256(request.encode()).hexdigest()
    whole = f'{{"call":{request},"endpoint":["fake","{fake.url}"]}}'
    assert kept.call.key == hashlib.sha256(whole.encode()).hexdigest()
    assert (kept.call.stage, kept.call.step, kept.finish, kept.model) == ("verdict", None, "stop", "fake-model-1")
    assert kept.latency is not None


def test_the_estimate_counts_characters_and_pictures(fake: Fake) -> None:
    desk = Desk(fake)
    pictures = [SentImage(desk.images.add(b"\xff\xd8" + bytes([n]))) for n in range(3)]
    desk.ask("x" * 4_000, *pictures)
    assert desk.gate.admitted == [(4_000 + len("You judge.")) // 4 + 3 * 1_100]


def test_a_lost_picture_fails_its_call_before_anything_is_asked(fake: Fake) -> None:
    desk = Desk(fake)
    with pytest.raises(CallFailed, match="gone from the store"):
        desk.ask(SentImage(ImageRef("0" * 64)))
    assert desk.ask("without").text
    assert fake.counts()["calls"] == 1


# --- What is never paid twice -----------------------------------------------------------------------------------


def test_a_reply_that_is_known_is_kept_as_a_hit_and_asks_nobody(fake: Fake) -> None:
    fake.says({"reply": FITS})
    paid = Desk(fake)
    picture = SentImage(paid.images.add(b"\xff\xd8 seen before"))
    first = paid.ask("Look:", picture, schema=SCHEMA, step=3)
    again = Desk(fake, call_log=MemoryCallLog(paid.call_log.replies), images=paid.images)
    assert again.ask("Look:", picture, schema=SCHEMA, step=3) == first
    assert fake.counts()["calls"] == 1
    assert again.gate.admitted == []
    [hit] = again.call_log.outcomes
    assert (hit.hit_of, hit.retries, hit.latency, hit.usage, hit.model) == (1, 0, None, first.usage, first.model)


@pytest.mark.parametrize(
    "other",
    [
        {"model": "gpt-4.1"},
        {"generation": Generation(temperature=0.1)},
        {"generation": Generation(seed=1)},
        {"generation": Generation(max_tokens=5)},
        {"generation": Generation(output="tool")},
        {"call_log": MemoryCallLog(sample="2")},
    ],
)
def test_a_call_that_differs_in_anything_is_another_call(fake: Fake, other: dict[str, Any]) -> None:
    fake.says({"reply": FITS})
    first = Desk(fake)
    first.ask(schema=SCHEMA)
    other.setdefault("call_log", MemoryCallLog())
    other["call_log"].replies = first.call_log.replies
    Desk(fake, **other).ask(schema=SCHEMA)
    assert fake.counts()["calls"] == 2


def test_the_same_words_with_another_picture_are_another_call(fake: Fake) -> None:
    desk = Desk(fake)
    for data in (b"\xff\xd8 one", b"\xff\xd8 two"):
        desk.ask("Look:", SentImage(desk.images.add(data)))
    assert fake.counts()["calls"] == 2


def test_equal_calls_at_the_same_time_are_paid_once_and_those_of_other_repetitions_are_not(fake: Fake) -> None:
    fake.says({"reply": "ok"}, latency=0.05)

    async def work(desk: Desk) -> None:
        call_logs = [MemoryCallLog(desk.call_log.replies, sample) for sample in ("1", "1", "1", "2", "3")]
        askers = [desk.client.asker(call_log, n) for n, call_log in enumerate(call_logs)]
        replies = await asyncio.gather(*(asker.ask(prompt(), stage="points") for asker in askers))
        assert {reply.text for reply in replies} == {"ok"}
        assert [call_logs[n].outcomes[0].hit_of is None for n in range(5)].count(True) == 3

    Desk(fake, patience=Patience(concurrency=8)).run(work)
    assert fake.counts()["calls"] == 3


def test_an_equal_call_is_made_when_the_first_one_failed(fake: Fake) -> None:
    fake.says({"times": 1, "status": 400}, {"reply": "ok"}, latency=0.05)

    async def work(desk: Desk) -> list[Any]:
        return await asyncio.gather(desk.asks(), desk.asks(), return_exceptions=True)

    first, second = Desk(fake).run(work)
    assert isinstance(first, CallFailed)
    assert second.text == "ok"


def test_a_kept_reply_that_cannot_be_read_is_asked_for_again(fake: Fake) -> None:
    desk = Desk(fake)
    desk.ask()
    desk.call_log.replies = dict.fromkeys(desk.call_log.replies, (1, "cut of"))
    assert desk.ask().text
    assert fake.counts()["calls"] == 2


def test_who_waits_no_longer_leaves_the_call_on_its_way_to_be_kept(fake: Fake) -> None:
    fake.says({"hold": True, "name": "held", "reply": "late but paid"})

    async def work(desk: Desk) -> None:
        asking = asyncio.create_task(desk.asks())
        await asyncio.to_thread(fake.wait, in_flight=1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert desk.call_log.outcomes == []
        await asyncio.to_thread(fake.release)

    desk = Desk(fake)
    desk.run(work)
    [kept] = desk.call_log.outcomes
    assert "late but paid" in str(kept.reply)
    assert desk.ask().text == "late but paid"
    assert fake.counts()["calls"] == 1


def test_who_is_cancelled_in_the_line_leaves_no_place_and_no_room_taken(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_client, "PICTURE_BYTES", 300_000)
    monkeypatch.setattr(llm_client, "SUPPOSED", 100_000)
    fake.says({"match": "held", "hold": True, "name": "held", "reply": "ok"}, {"reply": "ok"})
    images = FolderImages()
    pictures = pictures_of(images, 3, 100_000)

    async def work(desk: Desk) -> str:
        first = asyncio.create_task(desk.asks("held"))
        await asyncio.to_thread(fake.wait, in_flight=1)
        # One waits for the reply to the same question, some for the place with a picture in memory, most at the door.
        words = ["held", *(f"never {n}" for n in range(20))]
        waiting = [asyncio.create_task(desk.asks(word, *pictures[: word != "held"])) for word in words]
        await settled()
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)
        await asyncio.to_thread(fake.release)
        await first
        # Fills all the room that there is, and waits for ever where some was lost.
        return (await asyncio.wait_for(desk.asks("last", *pictures), 10)).text

    assert Desk(fake, images=images, patience=Patience(concurrency=1)).run(work) == "ok"
    assert fake.counts()["calls"] == 2


class SpentGate(OpenGate):
    """Lets so many calls through, then the budget is spent."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    async def admit(self, tokens: int) -> None:
        if len(self.admitted) >= self.calls:
            raise BudgetSpent("The budget of 1 US dollar is spent.")
        await super().admit(tokens)


def test_a_spent_budget_stops_before_the_next_call_and_keeps_every_reply(fake: Fake) -> None:
    async def work(desk: Desk) -> list[Any]:
        asked = [desk.asks(f"task {n}", order=n) for n in range(8)]
        return await asyncio.gather(*asked, return_exceptions=True)

    desk = Desk(fake, gate=SpentGate(3))
    came = desk.run(work)
    assert sum(isinstance(one, BudgetSpent) for one in came) == 5
    assert len([one for one in desk.call_log.outcomes if one.reply]) == fake.counts()["calls"] == 3


class FullCallLog(MemoryCallLog):
    """Cannot be written to."""

    async def record(self, outcome: Outcome) -> Decimal | None:
        raise OSError("The disk is full.")


def test_a_call_log_that_cannot_keep_a_reply_is_an_error_and_not_a_reply(fake: Fake) -> None:
    with pytest.raises(OSError, match="disk is full"):
        Desk(fake, call_log=FullCallLog()).ask()


# --- Who is served first ----------------------------------------------------------------------------------------


def test_there_are_never_more_calls_on_their_way_than_the_judge_allows(fake: Fake) -> None:
    """The fake answers nobody before five are there, so fewer than five would hang, and more would be counted."""
    fake.says({"times": 5, "hold": True, "name": "five", "reply": "ok"}, {"reply": "ok"})

    async def work(desk: Desk) -> None:
        asked = [asyncio.create_task(desk.asks(f"task {n}")) for n in range(40)]
        await asyncio.to_thread(fake.wait, in_flight=5)
        await settled()
        await asyncio.to_thread(fake.release)
        await asyncio.gather(*asked)

    desk = Desk(fake, patience=Patience(concurrency=5))
    desk.run(work)
    counts = fake.counts()
    assert (counts["calls"], counts["peak"], desk.client.in_flight_peak) == (40, 5, 5)


async def settled() -> None:
    """Let everything run that can, until only the network is left to wait for."""
    for _ in range(200):
        await asyncio.sleep(0)


def test_later_stages_go_first_and_then_the_item_that_began_first(fake: Fake) -> None:
    """While one call holds the only place, others line up in a wrong order; they are served in the right one."""
    fake.says({"match": "held", "hold": True, "name": "held", "reply": "ok"}, {"reply": "ok"}, record=True)

    async def work(desk: Desk) -> None:
        askers = [desk.client.asker(desk.call_log, order) for order in range(4)]
        for stage in ("points", "picture", "verdict"):  # one item shows which stages there are
            await askers[0].ask(prompt(f"first {stage}"), stage=stage)
        held = asyncio.create_task(askers[0].ask(prompt("held"), stage="verdict"))
        await asyncio.to_thread(fake.wait, in_flight=1)
        line = [(3, "points"), (2, "picture"), (1, "points"), (3, "verdict"), (1, "picture"), (2, "verdict")]
        asked = [asyncio.create_task(askers[n].ask(prompt(f"{n} {stage}"), stage=stage)) for n, stage in line]
        await settled()
        await asyncio.to_thread(fake.release)
        await asyncio.gather(held, *asked)

    desk = Desk(fake, patience=Patience(concurrency=1))
    desk.run(work)
    served = [body["messages"][1]["content"] for body in sent(fake)][4:]
    # The two that came first stood ready already, the later stage before the earlier one; the rest came by its rank.
    assert served == ["2 picture", "2 verdict", "3 verdict", "1 picture", "1 points", "3 points"]


class CountedImages(FolderImages):
    """Counts the bytes of all pictures that are in memory at once, by when each is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0

    async def load(self, image: ImageRef) -> bytes:
        await asyncio.sleep(0)
        picture = Picture(await super().load(image))
        picture.images = self
        self.held += len(picture)
        self.peak = max(self.peak, self.held)
        return picture


class Picture(bytes):
    images: CountedImages

    def __del__(self) -> None:
        self.images.held -= len(self)


@pytest.mark.parametrize("supposed", [1_000, 500_000], ids=["larger than supposed", "smaller than supposed"])
def test_pictures_in_memory_stay_below_their_bound(fake: Fake, monkeypatch: pytest.MonkeyPatch, supposed: int) -> None:
    bound, size = 1_000_000, 100_000
    monkeypatch.setattr(llm_client, "PICTURE_BYTES", bound)
    monkeypatch.setattr(llm_client, "SUPPOSED", supposed)
    images = CountedImages()
    pictures = pictures_of(images, 60, size)

    async def work(desk: Desk) -> None:
        singles = [desk.asks(f"{n}", picture, stage="picture") for n, picture in enumerate(pictures)]
        together = [desk.asks(f"all {n}", *pictures[n * 8 : n * 8 + 8]) for n in range(7)]
        await asyncio.gather(*singles, *together)

    desk = Desk(fake, images=images, patience=Patience(concurrency=16))
    desk.run(work)
    gc.collect()
    assert fake.counts()["calls"] == 67
    assert images.held == 0
    # Before a picture's size is known it may be too large; it is let go again then.
    allowed = bound if supposed >= size else bound + 20 * size
    assert images.peak <= allowed


def test_a_call_with_more_pictures_than_the_bound_goes_alone(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "PICTURE_BYTES", 300_000)
    monkeypatch.setattr(llm_client, "SUPPOSED", 1_000)
    images = CountedImages()
    pictures = pictures_of(images, 10, 100_000)

    async def work(desk: Desk) -> None:
        await asyncio.gather(*(desk.asks(f"{n}", *pictures) for n in range(4)), desk.asks("small", pictures[0]))

    Desk(fake, images=images).run(work)
    assert fake.counts()["calls"] == 5


def test_pictures_are_forgotten_once_they_are_sent_and_leave_room_for_the_next(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two calls that fill the bound each are on their way together: nobody keeps pictures while the model thinks."""
    monkeypatch.setattr(llm_client, "PICTURE_BYTES", 1_000_000)
    fake.says({"hold": True, "name": "all", "reply": "ok"})
    images = CountedImages()
    pictures = pictures_of(images, 20, 50_000)

    async def work(desk: Desk) -> None:
        asked = [asyncio.create_task(desk.asks(f"Look {n}:", *pictures)) for n in range(2)]
        await asyncio.to_thread(fake.wait, in_flight=2)
        await settled()
        assert images.held == 0
        await asyncio.to_thread(fake.release)
        await asyncio.gather(*asked)

    Desk(fake, images=images).run(work)
    assert images.peak == 1_000_000


# --- When another item may begin --------------------------------------------------------------------------------


def test_there_is_room_until_so_many_calls_are_open(fake: Fake) -> None:
    fake.says({"hold": True, "name": "all", "reply": "ok"})

    async def work(desk: Desk) -> None:
        asked = []
        for n in range(3):
            await asyncio.wait_for(desk.client.wait_for_room(), 1)
            asked.append(asyncio.create_task(desk.asks(f"task {n}")))
            await settled()
        room = asyncio.create_task(desk.client.wait_for_room())
        await settled()
        assert not room.done()
        await asyncio.to_thread(fake.release)
        await asyncio.wait_for(room, 10)
        await asyncio.gather(*asked)

    Desk(fake, patience=Patience(concurrency=3)).run(work)


def test_an_item_that_was_begun_counts_before_it_asks_and_no_more_when_it_is_gone(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm_client, "LOOK", 60.0)

    async def work(desk: Desk) -> None:
        begun = [desk.client.asker(desk.call_log, n) for n in range(2)]
        room = asyncio.create_task(desk.client.wait_for_room())
        await settled()
        assert not room.done()
        begun.pop()
        await asyncio.wait_for(room, 10)

    Desk(fake, patience=Patience(concurrency=2)).run(work)


def test_items_that_never_ask_do_not_block_the_others_for_ever(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_client, "LOOK", 0.01)

    async def work(desk: Desk) -> None:
        begun = [desk.client.asker(desk.call_log, n) for n in range(2)]
        await asyncio.wait_for(desk.client.wait_for_room(), 10)
        assert len(begun) == 2

    Desk(fake, patience=Patience(concurrency=2)).run(work)


@pytest.mark.parametrize("later", range(5))
def test_room_ends_when_it_is_cancelled_just_after_a_change(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    """A worker that is told to quit would otherwise take more items, for as long as the run has any."""
    monkeypatch.setattr(llm_client, "LOOK", 60.0)

    async def work(desk: Desk) -> None:
        begun = [desk.client.asker(desk.call_log, n) for n in range(3)]
        room = asyncio.create_task(desk.client.wait_for_room())
        await settled()
        begun.pop()  # a change, and still no room
        for _ in range(later):  # rounds of the event loop
            await asyncio.sleep(0)
        room.cancel()
        await asyncio.wait([room], timeout=10)
        assert room.cancelled()
        assert len(begun) == 2

    Desk(fake, patience=Patience(concurrency=2)).run(work)
