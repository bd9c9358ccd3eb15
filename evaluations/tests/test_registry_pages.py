"""The public registry as readers and programs get it: pages, caches, limits, feeds, badges and formats of others."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from django.conf import settings as django_settings
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotation.models import Benchmark
from evaluations.models import Entry
from evaluations.registry.chain import Kind
from evaluations.tests.builders import registered
from evaluations.tests.public_pages import list_addresses, walk
from evaluations.tests.test_export_labels import SCHEMAS
from evaluations.tests.test_publication_formats import validate

pytestmark = pytest.mark.django_db
HOSTILE = "\u202e<script>alert(1)</script>\"' & ]]> \x08\U0001f916 " + "W" * 150
LIMIT = 60_000  # bytes of a first page
ATOM = "{http://www.w3.org/2005/Atom}"
VOID = {"meta", "link", "input", "br", "img"}


@pytest.fixture(autouse=True)
def no_requests_counted(settings: Any) -> None:
    settings.REGISTRY_REQUESTS_PER_MINUTE = 0
    cache.clear()


@pytest.fixture
def shops() -> Benchmark:
    return registered.registry()


def text(address: str, **options: Any) -> str:
    response = Client().get(address, **options)
    assert response.status_code == 200, address
    return str(response.content.decode())


def page_of(entry: Entry, name: str = "registry-entry") -> str:
    return reverse(name, args=[entry.benchmark.slug, entry.key])


# --- pages -----------------------------------------------------------------------------------------------------------


def test_how_a_rate_was_measured_is_told_in_words_and_by_its_mark(shops: Benchmark) -> None:
    for method in ("people", "sample", "judge"):
        registered.accepted(registered.submitted(shops, f"Agent {method}"), method=method, judge="some-judge")
    shown = text("/registry/shops/")
    for method, words in (("people", "All by three people"), ("sample", "Planned sample"), ("judge", "Judge only")):
        assert f'href="#how-{method}"/></svg>{words}</span>' in shown
    assert "some-judge, 5 annotators, 1 adjudicator" in shown
    assert "38 of 40 agree" in shown


def test_every_rate_of_the_leaderboard_links_to_its_rows(shops: Benchmark) -> None:
    entry = registered.published(shops)
    assert f'<a href="{page_of(entry)}#rows">50.0%</a>' in text("/registry/shops/")
    shown = text(page_of(entry))
    assert '<section id="rows">' in shown
    assert shown.count('class="verdict v1"') == 3


@pytest.mark.parametrize(
    ("rows", "tasks"),
    [("1", ["0000", "0001", "0004"]), ("left-out", ["0003"]), ("changed", ["0002", "0003"]), ("nonsense", None)],
)
def test_rows_are_filtered_by_what_became_of_them(shops: Benchmark, rows: str, tasks: list[str] | None) -> None:
    entry = registered.published(shops)
    registered.rescored(entry, {"task_0002": 0, "task_0003": None}, "The shop closed.")
    found = re.findall(r'mono">task_(\d+)</bdi>', text(page_of(entry), query_params={"rows": rows}))
    assert found == (tasks if tasks is not None else ["0000", "0001", "0002", "0003", "0004", "0005"])


def test_an_earlier_version_stays_reachable_with_its_rows(shops: Benchmark) -> None:
    entry = registered.published(shops)
    registered.rescored(entry, {"task_0002": 1}, "It was a success.")
    newest, first = text(page_of(entry)), text(page_of(entry) + "?version=1")
    assert ("66.7%" in newest, "It was a success." in newest) == (True, True)
    assert '<p class="big">50.0%' in first
    assert "This is version 1 of 2." in first
    for wrong in ("0", "3", "x", "-1", "9" * 30):
        assert Client().get(page_of(entry), {"version": wrong}).status_code == 404


def test_the_ledger_tells_what_was_included_left_out_and_changed_from_what(shops: Benchmark) -> None:
    entry = registered.submitted(shops)
    registered.accepted(entry, [1, 0, None, None])
    registered.rescored(entry, {"task_0001": 1, "task_0000": None}, "The shop closed.")
    shown = re.sub(r"<[^>]+>|\s+", " ", text("/registry/shops/ledger"))
    shown = re.sub(r" +", " ", shown)
    assert "2 rows included" in shown
    assert "2 rows left out: No final verdict." in shown
    assert "task_0000 20260708 success left out The shop closed." in shown
    assert "task_0001 20260708 failure success The shop closed." in shown
    assert "task_0001" not in text("/registry/shops/ledger?kind=accepted")


def test_the_ledger_shows_twenty_rows_of_an_event_and_links_the_others(shops: Benchmark) -> None:
    entry = registered.submitted(shops)
    registered.accepted(entry, [1] * 30)
    registered.rescored(entry, {f"task_{number:04d}": 0 for number in range(30)})
    shown = text("/registry/shops/ledger?kind=rescored")
    assert shown.count("mono") == 20
    assert f'<a href="{page_of(entry)}?version=2&amp;rows=changed#rows">10 more rows</a>' in shown


def test_two_entries_are_compared_by_task_with_mcnemars_test(shops: Benchmark) -> None:
    first, second = (registered.submitted(shops, f"Agent {name}") for name in "AB")
    registered.accepted(first, [1] * 8 + [0, None, 2])
    registered.accepted(second, [1] * 2 + [0] * 6 + [0, 1])
    shown = text(f"/registry/shops/compare?a={first.key}&b={second.key}")
    tabs = dict(re.findall(r">([a-z ]+) (\d+)</a>", shown))
    assert tabs == {
        "all tasks": "10", "both succeed": "2", "only the first": "6", "only the second": "0", "neither": "1",
        "left out of one": "1",
    }  # fmt: skip
    assert "+66.7 points" in shown  # six of the nine that both have
    assert "McNemar p = 0.0312 (exact)" in re.sub(r"\s+", " ", shown)  # 2 / 2**6
    assert "1 task of the first entry and 0 of the second" in shown
    assert text(f"/registry/shops/compare?a={first.key}&b={second.key}&group=first").count('class="verdict v1"') == 6


def test_planned_samples_are_compared_without_a_test(shops: Benchmark) -> None:
    keys = []
    for method in ("people", "sample"):
        entry = registered.submitted(shops, method)
        registered.accepted(entry, method=method)
        keys.append(entry.key)
    shown = text(f"/registry/shops/compare?a={keys[0]}&b={keys[1]}")
    assert "No test is shown" in shown
    assert "McNemar" not in shown


@pytest.mark.parametrize("query", ["", "?a=KEY", "?a=KEY&b=KEY"])
def test_a_comparison_without_two_entries_says_how_to_choose_them(shops: Benchmark, query: str) -> None:
    entry = registered.published(shops)
    response = Client().get("/registry/shops/compare" + query.replace("KEY", entry.key))
    assert response.status_code == 400
    assert "Two different entries are needed." in response.content.decode()


@pytest.mark.parametrize("query", ["?a=x&b=y", "?a=%00&b=x", "?a=000000000000&b=000000000001"])
def test_a_comparison_of_unknown_entries_does_not_exist(shops: Benchmark, query: str) -> None:
    assert Client().get("/registry/shops/compare" + query).status_code == 404


def test_an_empty_registry_says_so(shops: Benchmark) -> None:
    assert "No entries at present." in text("/registry/shops/")
    assert "No such events yet." in text("/registry/shops/ledger")
    assert "No entries yet" in text("/registry/")


class Elements(HTMLParser):
    """Checks that elements are nested and attributes unique, and keeps what is asked."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attributes}) == len(attributes), (tag, attributes)
        self.seen.append((tag, dict(attributes)))
        self.ids += [value or "" for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.open)


def html_pages(shops: Benchmark) -> list[str]:
    keys = list(Entry.objects.order_by("pk").values_list("key", flat=True)[:3])
    return [each for each in list_addresses(shops.slug, *keys) if not re.search(r"\.\w+(\?|$)", each)]


def fill(shops: Benchmark, agents: list[str]) -> None:
    for agent in agents:
        entry = registered.published(shops, agent, organisation=agent, model=agent, scaffold=agent)
        registered.rescored(entry, {"task_0003": None, "task_0002": 1}, f"{agent} again")
    registered.append(entry, Kind.REMOVED, agents[-1])


def test_pages_are_well_formed_with_one_heading_and_nothing_from_elsewhere(shops: Benchmark) -> None:
    fill(shops, ["Agent A", HOSTILE, "Agent C"])
    pages = html_pages(shops)
    assert len(pages) > 15
    for address in pages:
        response = Client().get(address)
        found = Elements()
        found.feed(response.content.decode())
        assert found.open == [], address
        assert len(found.ids) == len(set(found.ids)), address
        tags = [tag for tag, _ in found.seen]
        assert tags.count("h1") == tags.count("main") == 1, address
        assert "script" not in tags, address
        for tag, attributes in found.seen:
            for name in ("src", "href", "action"):
                value = attributes.get(name) or ""
                linked = tag == "a" and attributes.get("rel") == "nofollow noopener"
                assert linked or value.startswith(("/", "?", "#", "http://testserver/")) or not value, (address, value)
            assert not [name for name in attributes if name.startswith("on") or name == "style"]


def test_pages_of_a_registry_link_its_feeds(shops: Benchmark) -> None:
    shown = text("/registry/shops/")
    for kind, name in (("atom+xml", "feed.xml"), ("feed+json", "feed.json")):
        stated = f'type="application/{kind}" title="New events of Benchmark shops" href="/registry/shops/{name}"'
        assert f'<link rel="alternate" {stated}>' in shown


@pytest.mark.parametrize("agent", ["Careful Agent", HOSTILE], ids=["usual", "hostile"])
def test_a_first_page_is_small_with_its_styles(shops: Benchmark, agent: str) -> None:
    fill(shops, [agent[:190] + str(number) for number in range(30)])
    styles = sum(
        (django_settings.BASE_DIR / "static" / "css" / name).stat().st_size
        for name in ("base.css", "comparison.css", "registry.css")
    )
    for address in html_pages(shops):
        size = len(Client().get(address).content)
        assert size < LIMIT, address
        if agent != HOSTILE:
            assert size + styles < LIMIT, address


# --- caches and limits -----------------------------------------------------------------------------------------------


def test_a_page_that_did_not_change_is_answered_without_being_built(shops: Benchmark) -> None:
    entry = registered.published(shops)
    for address in list_addresses("shops", entry.key):
        first = Client().get(address)
        if first.status_code != 200:
            continue
        with CaptureQueriesContext(
            connection,
        ) as queries:
            again = Client().get(address, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b""), address
        assert again["ETag"] == first["ETag"]
        assert (again["Cache-Control"], again["Vary"]) == ("public, max-age=60", "Accept-Encoding")
        assert len(queries) <= 5, address
        compressed = Client().get(address, headers={"Accept-Encoding": "gzip"})
        unchanged = Client().get(address, headers={"Accept-Encoding": "gzip", "If-None-Match": compressed["ETag"]})
        assert unchanged.status_code == 304, address


def test_each_step_changes_the_validators_of_what_shows_it(shops: Benchmark) -> None:
    first, second = (registered.published(shops, f"Agent {name}") for name in "AB")
    addresses = list_addresses("shops", first.key, second.key)
    before = walk(addresses)
    registered.append(first, Kind.CORRECTED, "The name was misspelt.")
    after = walk(addresses)
    same = {each for each in addresses if before[each][1] == after[each][1] and before[each][0] == 200}
    assert same == {each for each in addresses if f"/{second.key}" in each or each == "/registry/"}


def test_requests_of_an_address_are_limited_and_others_are_not(shops: Benchmark, settings: Any) -> None:
    settings.REGISTRY_REQUESTS_PER_MINUTE = 3
    assert [Client().get("/registry/shops/").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = Client().get("/registry/")
    assert (refused.status_code, refused["Retry-After"], refused["Cache-Control"]) == (429, "60", "no-store")
    assert "Try again in 60 seconds." in refused.content.decode()
    assert Client(REMOTE_ADDR="192.0.2.7").get("/registry/").status_code == 200
    assert Client().get("/sign-in").status_code == 200
    networks = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:0:1::1", "2001:db8:0:1::1"]
    found = [Client(REMOTE_ADDR=address).get("/registry/").status_code for address in networks]
    assert found == [200, 200, 200, 429, 200]


def test_pages_are_served_without_a_cache_and_without_a_limit(shops: Benchmark, settings: Any, caplog: Any) -> None:
    settings.REGISTRY_REQUESTS_PER_MINUTE = 1
    settings.CACHES = settings.CACHES | {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:1/0",
            "OPTIONS": {"socket_connect_timeout": 1, "retry": None},
        }
    }
    assert [Client().get("/registry/").status_code for _ in range(3)] == [200] * 3
    assert "The cache does not answer" in caplog.text


@pytest.mark.parametrize("method", ["post", "put", "delete", "options"])
def test_public_addresses_are_read_only(shops: Benchmark, method: str) -> None:
    entry = registered.published(shops)
    for address in list_addresses("shops", entry.key):
        assert getattr(Client(), method)(address).status_code == 405


def test_the_number_of_queries_does_not_depend_on_the_number_of_entries(shops: Benchmark) -> None:
    def count() -> dict[str, int]:
        keys = Entry.objects.order_by("pk").values_list("key", flat=True)[:2]
        found = {}
        for address in list_addresses("shops", *keys):
            with CaptureQueriesContext(connection) as queries:
                Client().get(address)
            found[address] = len(queries)
        return found

    fill(shops, ["Agent 1", "Agent 2", "Agent 3"])
    before = count()
    fill(shops, [f"Agent {number}" for number in range(4, 34)])
    after = count()
    assert {each: (before[each], after[each]) for each in before if after[each] > before[each]} == {}
    assert max(after.values()) <= 14


# --- feeds and data --------------------------------------------------------------------------------------------------


def test_the_json_of_all_entries_fits_its_schema_and_proves_the_chains(shops: Benchmark) -> None:
    fill(shops, ["Agent A", HOSTILE, "Agent C"])
    document = json.loads(text("/registry/shops/entries.json"))
    validate("registry", document)
    assert [entry["state"] for entry in document["entries"]] == ["accepted", "accepted", "removed"]
    for entry in document["entries"]:
        previous = "0" * 64
        for event in entry["chain"]:
            if "reason" in event:
                assert event["content"] == hash_of({"reason": event["reason"], "facts": event["facts"]})
            names = ("sequence", "kind", "role", "at", "content", "previous")
            assert event["hash"] == hash_of({"entry": entry["key"], **{name: event[name] for name in names}})
            assert event["previous"] == previous
            previous = event["hash"]


def hash_of(value: Any) -> str:
    """As the schema describes it, and not by the code that wrote it."""
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(written.encode()).hexdigest()


def test_the_json_of_an_entry_has_the_rows_of_every_version(shops: Benchmark) -> None:
    entry = registered.published(shops)
    registered.rescored(entry, {"task_0002": 1})
    document = json.loads(text(page_of(entry, "registry-entry-json")))
    validate("registry", document)
    rows = document["entries"][0]["rows"]
    assert [(row["version"], row["verdict"]) for row in rows if row["task_id"] == "task_0002"] == [(1, 0), (2, 1)]


def test_the_json_of_many_entries_comes_in_linked_pages(shops: Benchmark) -> None:
    for number in range(26):
        registered.published(shops, f"Agent {number}")
    address, keys = "/registry/shops/entries.json", []
    while address:
        document = json.loads(text(address))
        validate("registry", document)
        keys += [entry["key"] for entry in document["entries"]]
        address = (document["next"] or "").removeprefix("http://testserver")
    assert len(keys) == len(set(keys)) == document["total"] == 26


def test_tables_have_a_line_for_each_entry_and_row_without_formulas(shops: Benchmark) -> None:
    entry = registered.submitted(shops, "=1+1")
    registered.accepted(entry, [1, None])
    (line,) = csv.DictReader(io.StringIO(text("/registry/shops/entries.csv")))
    assert (line["agent"], line["success_rate"], line["bundle"]) == ("'=1+1", "1.0", entry.versions.get().manifest)
    rows = list(csv.DictReader(io.StringIO(text(page_of(entry, "registry-rows")))))
    assert [(row["task"], row["verdict"], row["included"]) for row in rows] == [
        ("task_0000", "1", "yes"),
        ("task_0001", "", "no"),
    ]


def test_feeds_have_the_new_steps_and_fit_their_formats(shops: Benchmark) -> None:
    fill(shops, ["Agent A", HOSTILE])
    feed = ElementTree.fromstring(text("/registry/shops/feed.xml"))
    assert {each.tag.removeprefix(ATOM) for each in feed} >= {"title", "id", "updated", "author", "link", "entry"}
    for name in ("id", "title", "updated", "link", "summary"):
        assert len(feed.findall(f"{ATOM}entry/{ATOM}{name}")) == 5, name
    titles = [each.text for each in feed.findall(f"{ATOM}entry/{ATOM}title")]
    assert titles[-1] == "Agent A: accepted"
    document = json.loads(text("/registry/shops/feed.json"))
    assert document["version"] == "https://jsonfeed.org/version/1.1"
    assert [item["title"] for item in document["items"]] == titles
    ids = [item["id"] for item in document["items"]]
    assert ids == [each.text for each in feed.findall(f"{ATOM}entry/{ATOM}id")]
    assert len(set(ids)) == 5
    for item in document["items"]:
        assert set(item) == {"id", "url", "title", "content_text", "date_published"}
        path, _, fragment = item["url"].partition("#")
        assert f'id="{fragment}"' in text(path.removeprefix("http://testserver"))
    assert not re.search(r"[\x00-\x08\u202e]", text("/registry/shops/feed.xml"))


@pytest.mark.parametrize("agent", ["Careful Agent", HOSTILE, "\u0648\u0643\u064a\u0644"])
def test_a_badge_is_an_image_of_its_own_with_a_text_alternative(shops: Benchmark, agent: str) -> None:
    Benchmark.objects.update(name=agent)
    entry = registered.published(shops, agent)
    response = Client().get(page_of(entry, "registry-badge"))
    assert response["Content-Type"] == "image/svg+xml; charset=utf-8"
    image = ElementTree.fromstring(response.content)
    svg = "{http://www.w3.org/2000/svg}"
    assert image.get("role") == "img"
    title = image.find(f"{svg}title")
    assert title is not None
    assert image.get("aria-labelledby") == title.get("id")
    assert "success rate 50.0% (95% interval 18.8 to 81.2), all by three people" in (title.text or "")
    texts = [each.text for each in image.iter(f"{svg}text")]
    assert texts[1] == "50.0% by people"
    assert not re.search(rb"href|url\(|<style|script>|@import|xlink", response.content)
    allowed = {"svg", "title", "rect", "path", "g", "text"}
    assert {each.tag.removeprefix(svg) for each in image.iter()} == allowed
    assert 'alt="' in text(page_of(entry))


@pytest.mark.parametrize("method", ["people", "sample", "judge"])
@pytest.mark.parametrize("agent", ["Careful Agent", HOSTILE])
def test_formats_of_others_fit_their_schemas(shops: Benchmark, method: str, agent: str) -> None:
    entry = registered.submitted(shops, agent, organisation="")
    version = registered.accepted(entry, method=method)
    document = json.loads(text(page_of(entry, "registry-every-eval-ever")))
    validate("every-eval-ever-0.3.0", document)
    (result,) = document["evaluation_results"]
    assert result["score_details"]["score"] == version.rate == 0.5
    assert document["source_metadata"]["evaluator_relationship"] == "third_party"
    assert result["source_data"]["url"] == [f"http://testserver{page_of(entry)}"]
    written = yaml.safe_load(
        text(page_of(entry, "registry-eval-results"), query_params={"dataset": "a/b", "task": "x"})
    )
    validate("huggingface-eval-results", written)
    assert (written[0]["value"], written[0]["dataset"]) == (0.5, {"id": "a/b", "task_id": "x"})
    assert version.manifest in written[0]["notes"]


@pytest.mark.parametrize("dataset", ["", "nothing", "a/b/c", "a b/c", "<script>/x"])
def test_results_for_hugging_face_need_the_dataset_of_the_benchmark(shops: Benchmark, dataset: str) -> None:
    entry = registered.published(shops)
    refused = Client().get(page_of(entry, "registry-eval-results"), {"dataset": dataset})
    assert (refused.status_code, refused["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert "dataset" in refused.content.decode()
    assert "?dataset=owner/name" in refused.content.decode()


def test_an_entry_without_a_rate_has_a_page_and_a_badge_and_no_results(shops: Benchmark) -> None:
    entry = registered.submitted(shops)
    registered.accepted(entry, [None])
    assert "no rate" in text(page_of(entry))
    assert "no rate" in text(page_of(entry, "registry-badge"))
    assert Client().get(page_of(entry, "registry-every-eval-ever")).status_code == 404
    assert "no rate" in text("/registry/shops/")


def test_the_schema_of_our_json_is_valid_and_refuses_what_it_does_not_state() -> None:
    schema = json.loads((SCHEMAS / "registry.schema.json").read_text())
    jsonschema.validators.validator_for(schema).check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        validate("registry", {"format": "webverdict-registry", "version": 1, "benchmark": {"slug": "x", "name": "X"}})
