"""Pebble & Pine, the demo booking site at stay.example: search by dates, a house, a booking, a CAPTCHA wall."""

from __future__ import annotations

from datetime import date
from html import escape
from urllib.parse import urlencode
from zlib import crc32

from tools.demo.pages import Reply, Request, choice, document, facts_table, field_row, stars
from tools.demo.pictures import scene, valley
from tools.demo.stock import SITE_DATE, STAYS, STAYS_BY_SLUG, Room, Stay

HOST = "stay.example"


def reply(request: Request) -> Reply:
    """Return the page for ``request``; 404 for an unknown path, 403 with a CAPTCHA for the group rates."""
    match request.path.strip("/").split("/"):
        case [""]:
            return _home()
        case ["search"]:
            return _results(request)
        case ["stays", slug] if slug in STAYS_BY_SLUG:
            return _house(request, STAYS_BY_SLUG[slug])
        case ["book", slug] if slug in STAYS_BY_SLUG:
            return (
                _booked(request, STAYS_BY_SLUG[slug])
                if request.method == "POST"
                else _form(request, STAYS_BY_SLUG[slug])
            )
        case ["group-rates"]:
            return _captcha(request)
    return _page("Not found", '<section class="notice"><h1>Page not found</h1></section>', "404 Not Found")


def _page(title: str, main: str, status: str = "200 OK") -> Reply:
    body = (
        '<header><a class="logo" href="/"><i></i>Pebble &amp; Pine</a>'
        '<nav><a href="/search">All houses</a><a href="/group-rates">Group rates</a></nav></header>'
        f"<main>{main}</main><footer>Pebble &amp; Pine · small houses, kept by people</footer>"
    )
    return Reply(document(f"{title} | Pebble & Pine", "stay", body), status)


def _search_form(request: Request | None = None) -> str:
    value = request.one if request else lambda name: ""
    return (
        f'<form class="finder" action="/search">{field_row("place", "Where", value("place"), hint="Town")}'
        f"{field_row('from', 'Check-in', value('from'), hint='YYYY-MM-DD')}"
        f"{field_row('to', 'Check-out', value('to'), hint='YYYY-MM-DD')}"
        f"{field_row('guests', 'Guests', value('guests'), hint='2')}<button>Search</button></form>"
    )


def _card(stay: Stay, dates: str) -> str:
    return (
        f'<a class="card" href="/stays/{stay.slug}{dates}"><div class="picture">{scene(stay.scene)}</div>'
        f'<div><h3>{escape(stay.name)}</h3><p class="small">{escape(stay.place)}</p><p>{escape(stay.blurb)}</p>'
        f'<p class="rate">{stars(stay.rating)} {stay.rating} <span>({stay.reviews})</span></p>'
        f'<p class="price">from ${min(room.price for room in stay.rooms)} <span>a night</span></p></div></a>'
    )


def _home() -> Reply:
    cards = "".join(_card(stay, "") for stay in STAYS)
    hero = (
        f'<section class="hero">{valley()}<div><h1>Stay somewhere small.</h1>'
        f"<p>Four houses, no lobby music.</p></div></section>{_search_form()}"
    )
    return _page("Home", f'{hero}<h2>Our houses</h2><div class="grid">{cards}</div>')


def _dates_query(request: Request) -> str:
    given = {name: request.one(name) for name in ("from", "to", "guests") if request.one(name)}
    return f"?{urlencode(given)}" if given else ""


def _results(request: Request) -> Reply:
    place = request.one("place").strip().lower()
    found = [stay for stay in STAYS if place in stay.place.lower()]
    cards = "".join(_card(stay, _dates_query(request)) for stay in found)
    where = f" in {escape(request.one('place'))}" if place else ""
    count = f"{len(found)} house{'' if len(found) == 1 else 's'}"
    main = f'{_search_form(request)}<h2>{count}{where}</h2><div class="grid">{cards}</div>'
    return _page("Houses", main if found else f"{_search_form(request)}<h2>No house{where}</h2>")


def _house(request: Request, stay: Stay) -> Reply:
    kept = {name: request.one(name) for name in ("from", "to", "guests") if request.one(name)}
    rows = "".join(
        f"<tr><td><b>{room.name}</b></td><td>sleeps {room.sleeps}</td><td>${room.price} a night</td>"
        f'<td><a class="button" href="/book/{stay.slug}?{urlencode({"room": room.code, **kept})}">Book</a></td>'
        "</tr>"
        for room in stay.rooms
    )
    main = (
        f'<div class="house"><div class="picture">{scene(stay.scene)}</div><div><h1>{escape(stay.name)}</h1>'
        f'<p class="small">{escape(stay.place)}</p>'
        f'<p class="rate">{stars(stay.rating)} {stay.rating} <span>({stay.reviews} reviews)</span></p>'
        f'<p>{escape(stay.blurb)}</p></div></div><h2>Rooms</h2><table class="lines">{rows}</table>'
        f"<h2>House rules</h2>{facts_table(stay.policies)}"
    )
    return _page(stay.name, main)


def _room(request: Request, stay: Stay) -> Room:
    return next((room for room in stay.rooms if room.code == request.one("room")), stay.rooms[0])


def _form(request: Request, stay: Stay, problem: str = "") -> Reply:
    room = _room(request, stay)
    alert = f'<p class="alert">{escape(problem)}</p>' if problem else ""
    fields = "".join(
        field_row(name, label, request.one(name), hint=hint)
        for name, label, hint in (
            ("from", "Check-in", "YYYY-MM-DD"),
            ("to", "Check-out", "YYYY-MM-DD"),
            ("guests", "Guests", "1"),
            ("name", "Name of the guest", ""),
        )
    )
    breakfast = choice(
        "checkbox", "breakfast", "1", f"Breakfast, ${room.breakfast} per person and night",
        checked=bool(request.one("breakfast")),
    )  # fmt: skip
    main = (
        f'<h1>Book: {escape(room.name)}, {escape(stay.name)}</h1>{alert}<form class="booking" method="post" '
        f'action="/book/{stay.slug}"><input type="hidden" name="room" value="{room.code}">'
        f'<div class="pair">{fields}</div>{breakfast}<p class="small">${room.price} a night · pay on arrival</p>'
        f"<button>Confirm booking</button></form>"
    )
    return _page("Book", main)


def _nights(request: Request) -> int | None:
    try:
        start, end = date.fromisoformat(request.one("from")), date.fromisoformat(request.one("to"))
    except ValueError:
        return None
    return (end - start).days if SITE_DATE <= start < end else None


def _booked(request: Request, stay: Stay) -> Reply:
    room, nights, guests = _room(request, stay), _nights(request), request.whole("guests")
    if not nights or not guests or guests > room.sleeps or not request.one("name").strip():
        return _form(request, stay, "Please give dates, a name, and no more guests than the room sleeps.")
    breakfast = bool(request.one("breakfast"))
    price = nights * (room.price + (room.breakfast * guests if breakfast else 0))
    number = crc32(urlencode(request.values, doseq=True).encode()) % 1_000_000
    start, end = date.fromisoformat(request.one("from")), date.fromisoformat(request.one("to"))
    rows = (
        ("Booking number", f"PP-{number:06d}"),
        ("House", f"{stay.name}, {stay.place}"),
        ("Room", f"{room.name}, {guests} guest{'' if guests == 1 else 's'}"),
        ("Dates", f"{start:%d %B %Y} to {end:%d %B %Y}, {nights} night{'' if nights == 1 else 's'}"),
        ("Breakfast", "Included" if breakfast else "Not included"),
        ("Guest", request.one("name")),
        ("Total", f"${price:,}, paid on arrival"),
    )
    main = f'<section class="done"><i>✓</i><h1>Your booking is confirmed</h1>{facts_table(rows)}</section>'
    return _page("Confirmed", main)


def _captcha(request: Request) -> Reply:
    failed = request.method == "POST"
    alert = '<p class="alert">We could not verify you. Please try again.</p>' if failed else ""
    body = (
        f'<main class="wall"><section><i></i><h1>Verify you are human</h1>'
        f"<p>{HOST} needs to check the security of your connection before you go on.</p>{alert}"
        '<form method="post"><label class="check">'
        '<input type="checkbox" name="human" onchange="this.form.submit()">'
        "<span>I am not a robot</span><em>GateKeep</em></label></form>"
        "<p class=small>Automated visits are not allowed here. Reference 7c1e-40d2.</p></section></main>"
    )
    return Reply(document("Just a moment...", "stay", body), "403 Forbidden")
