"""Larkfield, the demo shop at shop.example: listing with filters, search, product, cart, checkout."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from html import escape
from urllib.parse import urlencode
from zlib import crc32

from tools.demo.pages import Reply, Request, choice, document, facts_table, field_row, redirect, stars
from tools.demo.pictures import product_picture
from tools.demo.stock import CATEGORIES, PRODUCTS, PRODUCTS_BY_SLUG, Product

HOST = "shop.example"
SORTS: dict[str, tuple[str, Callable[[Product], object]]] = {
    "featured": ("Featured", lambda product: -product.reviews),
    "price-asc": ("Price: low to high", lambda product: product.price),
    "price-desc": ("Price: high to low", lambda product: -product.price),
    "rating": ("Customer rating", lambda product: -product.rating),
    "newest": ("Newest first", lambda product: -product.released.toordinal()),
}
_FILTER_NAMES = ("min", "max", "memory", "rating", "brand", "stock", "shipping", "wireless")


def reply(request: Request) -> Reply:
    """Return the page for ``request``; 404 for an unknown path, 410 for the service that ended."""
    parts = request.path.strip("/").split("/")
    match parts:
        case [""]:
            return _home(request)
        case ["c", category] if category in CATEGORIES:
            return _listing(request, category)
        case ["search"]:
            return _search(request)
        case ["p", slug] if slug in PRODUCTS_BY_SLUG:
            return _product(request, PRODUCTS_BY_SLUG[slug])
        case ["cart", "add"] if request.one("product") in PRODUCTS_BY_SLUG:
            return redirect(
                "/cart", ("Set-Cookie", f"cart={'.'.join((*request.cart, request.one('product')))}; Path=/")
            )
        case ["cart"]:
            return _cart(request)
        case ["checkout"]:
            return _order_placed(request) if request.method == "POST" else _checkout(request)
        case ["trade-in"]:
            return _trade_in(request)
    return _page(request, "Not found", _notice("Page not found", "We looked everywhere."), "404 Not Found")


def _page(request: Request, title: str, main: str, status: str = "200 OK", *, current: str = "") -> Reply:
    links = "".join(
        f'<a href="/c/{slug}"{" class=current" if slug == current else ""}>{name}</a>'
        for slug, name in CATEGORIES.items()
    )
    query = escape(request.one("q")) if request.path == "/search" else ""
    body = (
        '<header><a class="logo" href="/"><i></i>Larkfield</a>'
        '<form class="search" action="/search">'
        '<input name="q" placeholder="Search 42 products" autocomplete="off" '
        f'value="{query}"><button>Search</button></form>'
        f'<a class="cart" href="/cart">Cart <b>{len(request.cart)}</b></a></header><nav>{links}</nav>'
        f"<main>{main}</main><footer>Larkfield Electronics · 30 days to return · 2 years of warranty</footer>"
    )
    return Reply(document(f"{title} | Larkfield", "shop", body), status)


def _notice(title: str, text: str, extra: str = "") -> str:
    return f'<section class="notice"><h1>{escape(title)}</h1><p>{escape(text)}</p>{extra}</section>'


def _card(product: Product) -> str:
    stock = "In stock" if product.stock else "Sold out"
    badge = '<em class="badge">Free shipping</em>' if product.free_shipping else ""
    memory = f"{product.memory} GB · " if product.memory else ""
    return (
        f'<a class="card" href="/p/{product.slug}"><div class="picture">'
        f"{product_picture(product.category, product.colour)}{badge}</div><h3>{escape(product.name)}</h3>"
        f'<p class="rate">{stars(product.rating)} {product.rating} <span>({product.reviews})</span></p>'
        f'<p class="small {"in" if product.stock else "out"}">{memory}{stock} · {product.released:%b %Y}</p>'
        f'<p class="price">${product.price:,}</p></a>'
    )


def _cards(products: Iterable[Product]) -> str:
    return f'<div class="grid">{"".join(map(_card, products))}</div>'


def _home(request: Request) -> Reply:
    best = sorted(PRODUCTS, key=lambda product: (-product.rating, product.name))[:4]
    tiles = "".join(
        f'<a class="tile" href="/c/{slug}">'
        f"{product_picture(slug, next(p.colour for p in PRODUCTS if p.category == slug))}<b>{name}</b></a>"
        for slug, name in CATEGORIES.items()
    )
    hero = (
        '<section class="hero"><div><h1>Good tools, fair prices.</h1>'
        "<p>Forty-two things that we would buy ourselves. Ships tomorrow.</p>"
        '<a class="button" href="/c/laptops">See the laptops</a></div>'
        f"{product_picture('laptops', '#f4c95d')}</section>"
    )
    return _page(request, "Home", f'{hero}<div class="tiles">{tiles}</div><h2>Best rated</h2>{_cards(best)}')


def _matches(product: Product, request: Request) -> bool:
    minimum, maximum, rating = request.whole("min"), request.whole("max"), request.one("rating")
    return all(
        (
            minimum is None or product.price >= minimum,
            maximum is None or product.price <= maximum,
            not request.many("memory") or str(product.memory) in request.many("memory"),
            not rating or product.rating >= float(rating),
            not request.many("brand") or product.brand in request.many("brand"),
            not request.one("stock") or product.stock > 0,
            not request.one("shipping") or product.free_shipping,
            not request.one("wireless") or "Wireless" in product.name,
        )
    )


def _chips(request: Request) -> str:
    texts = []
    if request.whole("min") is not None or request.whole("max") is not None:
        texts.append(_price_chip(request.whole("min"), request.whole("max")))
    texts += [f"{memory} GB" for memory in request.many("memory")]
    texts += [f"{request.one('rating')} stars & up"] if request.one("rating") else []
    texts += request.many("brand")
    names = {"stock": "In stock", "shipping": "Free shipping", "wireless": "Wireless"}
    texts += [name for key, name in names.items() if request.one(key)]
    return "".join(f'<span class="chip">{escape(text)}</span>' for text in texts)


def _price_chip(low: int | None, high: int | None) -> str:
    if low is None:
        return f"Price up to ${high:,}"
    return f"Price from ${low:,}" if high is None else f"Price ${low:,} – ${high:,}"


def _filter_panel(request: Request, everything: list[Product]) -> str:
    memories = sorted({product.memory for product in everything} - {0})
    brands = sorted({product.brand for product in everything})
    groups = [
        ("Price", '<div class="range">' + field_row("min", "Min $", request.one("min"))
         + field_row("max", "Max $", request.one("max")) + "</div>"),
        ("Memory", _choices(request, "memory", [(str(memory), f"{memory} GB") for memory in memories])),
        ("Customer rating", _choices(request, "rating", [("4.5", "4.5 & up"), ("4", "4 & up")])),
        ("Brand", _choices(request, "brand", [(brand, brand) for brand in brands])),
        ("Availability", _switches(request, {"stock": "In stock", "shipping": "Free shipping"})),
    ]  # fmt: skip
    if any("Wireless" in product.name for product in everything):
        groups.insert(1, ("Connection", _switches(request, {"wireless": "Wireless only"})))
    fields = "".join(f"<fieldset><legend>{name}</legend>{body}</fieldset>" for name, body in groups if body)
    sort = f'<input type="hidden" name="sort" value="{escape(request.one("sort"))}">' if request.one("sort") else ""
    return f'<form class="filters"><h2>Filters</h2>{fields}{sort}<button>Apply filters</button></form>'


def _choices(request: Request, name: str, options: list[tuple[str, str]]) -> str:
    kind, given = ("radio" if name == "rating" else "checkbox"), request.many(name)
    rows = "".join(choice(kind, name, value, label, checked=value in given) for value, label in options)
    return f'<div class="choices">{rows}</div>' if rows else ""


def _switches(request: Request, names: dict[str, str]) -> str:
    rows = (choice("checkbox", name, "1", label, checked=bool(request.one(name))) for name, label in names.items())
    return f'<div class="choices">{"".join(rows)}</div>'


def _sort_box(request: Request) -> str:
    current = request.one("sort", "featured")
    options = "".join(
        f'<option value="{key}"{" selected" if key == current else ""}>{label}</option>'
        for key, (label, _) in SORTS.items()
    )
    kept = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name in _FILTER_NAMES
        for value in request.many(name)
    )
    select = f'<select name="sort" onchange="this.form.submit()">{options}</select>'
    return f'<form class="sort">{kept}<label>Sort by {select}</label></form>'


def _listing(request: Request, category: str) -> Reply:
    everything = [product for product in PRODUCTS if product.category == category]
    order = SORTS.get(request.one("sort"), SORTS["featured"])[1]
    shown = sorted((product for product in everything if _matches(product, request)), key=order)  # type: ignore[arg-type]
    name = CATEGORIES[category]
    note = '<p class="banner">Every keyboard ships free, to every address.</p>' if category == "keyboards" else ""
    results = _cards(shown) if shown else _notice(
        f"No {name.lower()} match these filters", "0 results. Change or remove a filter to see more.",
        f'<a class="button" href="/c/{category}">Remove all filters</a>',
    )  # fmt: skip
    main = (
        f'<div class="columns">{_filter_panel(request, everything)}<section><div class="bar"><h1>{name}</h1>'
        f'<span class="count">{len(shown)} of {len(everything)}</span>{_sort_box(request)}</div>'
        f'<div class="chips">{_chips(request)}</div>{note}{results}</section></div>'
    )
    return _page(request, name, main, current=category)


def _search(request: Request) -> Reply:
    words = request.one("q").lower().split()
    scored = [(sum(word in f"{p.name} {p.category}".lower() for word in words), p) for p in PRODUCTS]
    found = [product for score, product in sorted(scored, key=lambda pair: (-pair[0], -pair[1].reviews)) if score]
    title = f"Results for “{request.one('q')}”"
    if not found:
        return _page(
            request,
            "Search",
            _notice(title, "0 results. Check the spelling or browse the departments above."),
        )
    count = f'<span class="count">{len(found)} results · best match first</span>'
    bar = f'<div class="bar"><h1>{escape(title)}</h1>{count}</div>'
    return _page(request, "Search", bar + _cards(found))


def _product(request: Request, product: Product) -> Reply:
    button = "<button>Add to cart</button>" if product.stock else "<button disabled>Sold out</button>"
    stock = f"{product.stock} in stock" if product.stock else "Sold out"
    main = (
        f'<p class="crumbs"><a href="/c/{product.category}">{CATEGORIES[product.category]}</a>'
        f" / {escape(product.name)}</p>"
        f'<div class="product"><div class="picture">{product_picture(product.category, product.colour)}</div><div>'
        f"<h1>{escape(product.name)}</h1>"
        f'<p class="rate">{stars(product.rating)} {product.rating} <span>({product.reviews} reviews)</span></p>'
        f'<p class="price">${product.price:,}</p><p class="small {"in" if product.stock else "out"}">{stock} · '
        f"{'free shipping' if product.free_shipping else 'shipping $6'}</p>"
        f'<form method="post" action="/cart/add"><input type="hidden" name="product" value="{product.slug}">'
        f"{button}</form><ul><li>Ships tomorrow when ordered before 4 pm</li><li>30 days to return it, no "
        "questions</li><li>Repairs in our own workshop</li></ul></div></div>"
        f'<section class="block"><h2>About this product</h2><p>{escape(product.name)} by {escape(product.brand)}, '
        f"on sale since {product.released:%B %Y}. Tested by our own people for two weeks before we list it.</p>"
        "</section>"
        f'<section class="block"><h2>Specifications</h2>{facts_table(product.facts)}</section>'
    )
    return _page(request, product.name, main, current=product.category)


def _total(request: Request) -> int:
    return sum(PRODUCTS_BY_SLUG[slug].price for slug in request.cart if slug in PRODUCTS_BY_SLUG)


def _cart(request: Request) -> Reply:
    if not request.cart:
        return _page(request, "Cart", _notice("Your cart is empty", "Things that you add are shown here."))
    rows = "".join(
        f'<tr><td class="thumb">{product_picture(p.category, p.colour)}</td><td><b>{escape(p.name)}</b><br>'
        f"<span>{'Free shipping' if p.free_shipping else 'Shipping $6'}</span></td><td>Quantity 1</td>"
        f'<td class="sum">${p.price:,}</td></tr>'
        for p in (PRODUCTS_BY_SLUG[slug] for slug in request.cart if slug in PRODUCTS_BY_SLUG)
    )
    main = (
        f'<h1>Your cart</h1><p class="banner">Added to your cart.</p><table class="lines">{rows}'
        f'<tr class="total"><td></td><td></td><td>Subtotal</td><td class="sum">${_total(request):,}</td></tr>'
        "</table>"
        '<p class="end"><a class="button" href="/checkout">Go to checkout</a></p>'
    )
    return _page(request, "Cart", main)


def _checkout(request: Request, problem: str = "") -> Reply:
    alert = f'<p class="alert">{problem}</p>' if problem else ""
    names = (("name", "Full name"), ("email", "E-mail"), ("street", "Street and number"), ("city", "City"))
    fields = "".join(field_row(name, label, request.one(name)) for name, label in names)
    summary = "".join(
        f"<p>{escape(PRODUCTS_BY_SLUG[slug].name)} <b>${PRODUCTS_BY_SLUG[slug].price:,}</b></p>"
        for slug in request.cart
        if slug in PRODUCTS_BY_SLUG
    )
    main = (
        f'<h1>Checkout as a guest</h1>{alert}<form class="checkout" method="post"><div><h2>Address</h2>'
        f"{fields}</div>"
        "<div><h2>Payment</h2>"
        f"{choice('radio', 'pay', 'card', 'Credit card', checked=True)}"
        f"{choice('radio', 'pay', 'invoice', 'Pay by invoice')}"
        f'<h2>Your order</h2><div class="summary">{summary}<p class="total">Total <b>${_total(request):,}</b></p>'
        "</div><button>Place order</button></div></form>"
    )
    return _page(request, "Checkout", main)


def _order_placed(request: Request) -> Reply:
    if not all(request.one(name).strip() for name in ("name", "email", "street", "city")):
        return _checkout(request, "Please fill in every field.")
    number = crc32(urlencode(request.values, doseq=True).encode()) % 100_000
    pay = "by invoice" if request.one("pay") == "invoice" else "by credit card"
    items = ", ".join(PRODUCTS_BY_SLUG[slug].name for slug in request.cart if slug in PRODUCTS_BY_SLUG)
    rows = (
        ("Order number", f"LF-{number:05d}"),
        ("Items", items),
        ("Delivered to", f"{request.one('name')}, {request.one('street')}, {request.one('city')}"),
        ("Payment", f"${_total(request):,} {pay}"),
    )
    main = f'<section class="done"><i>✓</i><h1>Thank you, your order is placed</h1>{facts_table(rows)}</section>'
    page = _page(replace(request, cart=()), "Order placed", main)
    return replace(page, headers=(("Set-Cookie", "cart=; Path=/"),))


def _trade_in(request: Request) -> Reply:
    text = "Larkfield Trade-In ended on 30 September 2025. We no longer give quotes for used devices."
    extra = '<p class="code">410 · This page is gone for good</p><a class="button" href="/">Back to the shop</a>'
    return _page(request, "Gone", _notice("This service was discontinued", text, extra), "410 Gone")
