"""Data of the demo shop and booking site. Brands, places and numbers are invented."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

SITE_DATE = date(2025, 11, 3)  # the current day of both sites, so that recordings can be repeated


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the shop; ``price`` in whole dollars, ``memory`` in GB (0: does not apply)."""

    name: str
    brand: str
    category: str
    price: int
    rating: float
    reviews: int
    memory: int
    released: date
    stock: int
    colour: str
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def slug(self) -> str:
        return self.name.lower().replace(" ", "-")

    @property
    def free_shipping(self) -> bool:
        return self.category == "keyboards" or self.price >= 500


@dataclass(frozen=True, slots=True)
class Room:
    """A kind of room; ``price`` in whole dollars per night, ``breakfast`` in dollars per person and night."""

    code: str
    name: str
    sleeps: int
    price: int
    breakfast: int


@dataclass(frozen=True, slots=True)
class Stay:
    """A house with rooms; ``policies`` are shown on its page."""

    name: str
    place: str
    rating: float
    reviews: int
    blurb: str
    scene: str
    rooms: tuple[Room, ...]
    policies: tuple[tuple[str, str], ...]

    @property
    def slug(self) -> str:
        return self.name.lower().replace(" ", "-")


CATEGORIES = {
    "laptops": "Laptops",
    "headphones": "Headphones",
    "tablets": "Tablets",
    "monitors": "Monitors",
    "keyboards": "Keyboards",
    "speakers": "Speakers",
}

# category | brand | model | price | rating | reviews | memory | released | stock | colour
_PRODUCT_TABLE = """
laptops|Aster|14 Go|599|4.1|340|8|2024-09-02|30|#7fb3d5
laptops|Aster|14 Air|949|4.6|212|16|2025-03-11|14|#5dade2
laptops|Aster|16 Studio|1749|4.8|96|32|2025-06-17|5|#2e86c1
laptops|Kestrel|One|449|3.8|521|8|2023-11-20|40|#b2babb
laptops|Kestrel|Flex 13|829|4.3|264|16|2024-10-08|12|#e59866
laptops|Kestrel|Pro 15|1299|4.4|187|32|2025-01-28|9|#ca6f1e
laptops|Kestrel|Max 17|2199|4.5|73|64|2025-05-06|3|#873600
laptops|Tannwell|Book 13|879|4.0|158|8|2024-02-13|16|#a9dfbf
laptops|Tannwell|Book 14|719|4.2|301|16|2024-04-16|21|#52be80
laptops|Tannwell|Book 15 Plus|999|4.5|143|16|2025-02-04|8|#229954
laptops|Tannwell|Forge 16|1599|4.7|118|32|2025-07-01|6|#145a32
laptops|Sable|Lite|649|3.9|190|16|2023-08-29|17|#aeb6bf
laptops|Sable|Edge 14|1049|4.4|88|16|2025-04-22|11|#5d6d7e
laptops|Sable|Creator 16|1689|4.9|41|32|2025-08-19|0|#2c3e50
headphones|Lumo|Hush 3 Wireless|179|4.6|612|0|2025-02-18|33|#af7ac5
headphones|Lumo|Bud Wireless|59|4.2|930|0|2024-05-21|80|#d2b4de
headphones|Brisk|Tune Wireless|39|3.7|411|0|2023-10-10|0|#f5b041
headphones|Brisk|Tune Cable|19|3.9|705|0|2022-09-13|120|#f8c471
headphones|Aster|Listen Wireless|129|4.4|288|0|2024-11-05|25|#5dade2
headphones|Sable|Studio Cable|149|4.7|164|0|2023-04-04|13|#34495e
headphones|Tannwell|Loop Wireless|49|4.0|377|0|2024-08-27|46|#52be80
tablets|Aster|Tab 11|429|4.5|233|8|2025-05-20|18|#5dade2
tablets|Aster|Tab 8|249|4.2|410|4|2024-03-19|35|#85c1e9
tablets|Kestrel|Slate 10|329|4.6|152|6|2025-09-09|22|#ca6f1e
tablets|Kestrel|Slate Mini|199|4.0|298|4|2024-06-04|27|#edbb99
tablets|Sable|Canvas 12|699|4.8|87|12|2025-07-15|7|#2c3e50
tablets|Tannwell|Leaf 10|279|4.3|175|6|2025-10-14|19|#52be80
tablets|Lumo|Page 9|159|3.9|340|3|2023-12-05|51|#c39bd3
monitors|Orrin|View 24|159|4.3|502|0|2023-05-16|44|#7f8c8d
monitors|Orrin|View 27|229|4.4|366|0|2024-01-30|28|#616a6b
monitors|Orrin|Wide 34|479|4.6|141|0|2025-03-25|10|#424949
monitors|Sable|Pixel 27 4K|389|4.7|203|0|2024-12-03|15|#2c3e50
monitors|Aster|Display 24|189|4.1|187|0|2023-09-19|20|#5dade2
keyboards|Brisk|K2|69|4.5|588|0|2024-10-22|60|#f5b041
keyboards|Brisk|K2 Mini|59|4.3|244|0|2025-01-14|42|#f8c471
keyboards|Orrin|Type 75|119|4.7|176|0|2025-06-03|14|#616a6b
keyboards|Orrin|Type 100|139|4.6|131|0|2025-06-03|9|#424949
keyboards|Lumo|Soft Keys|45|4.1|319|0|2023-11-07|70|#c39bd3
keyboards|Sable|Board Low|99|4.4|97|0|2024-07-09|18|#34495e
speakers|Lumo|Glow|79|4.3|266|0|2024-04-23|31|#af7ac5
speakers|Lumo|Glow Max|199|4.6|118|0|2025-08-05|12|#7d3c98
speakers|Brisk|Brick|35|3.8|433|0|2023-02-14|64|#f5b041
"""

_FACTS: dict[str, tuple[tuple[str, str], ...]] = {
    "Aster 14 Air": (
        ("Processor", "Aster A3, 8 cores"),
        ("Memory", "16 GB"),
        ("Storage", "512 GB SSD"),
        ("Display", "14.0 in, 2240 × 1400"),
        ("Battery life", "Up to 13.5 hours"),
        ("Weight", "1.18 kg"),
        ("Ports", "2 × USB-C, 1 × USB-A, HDMI"),
    ),
}


def _product(row: str) -> Product:
    category, brand, model, price, rating, reviews, memory, released, stock, colour = row.split("|")
    name = f"{brand} {model}"
    facts = _FACTS.get(name) or (
        ("Brand", brand),
        *((("Memory", f"{memory} GB"),) if memory != "0" else ()),
        ("Released", released),
        ("Warranty", "2 years"),
    )
    return Product(
        name, brand, category, int(price), float(rating), int(reviews), int(memory),
        date.fromisoformat(released), int(stock), colour, facts,
    )  # fmt: skip


PRODUCTS: tuple[Product, ...] = tuple(_product(row) for row in _PRODUCT_TABLE.split("\n") if row)
PRODUCTS_BY_SLUG = {product.slug: product for product in PRODUCTS}


def _rooms(single: int, double: int, family: int, breakfast: int) -> tuple[Room, ...]:
    return (
        Room("single", "Single room", 1, single, breakfast),
        Room("double", "Double room", 2, double, breakfast),
        Room("family", "Family room", 4, family, breakfast),
    )


def _policies(arrive: str, leave: str, pets: str, cancel: str) -> tuple[tuple[str, str], ...]:
    return (("Check-in", arrive), ("Check-out", leave), ("Pets", pets), ("Cancellation", cancel))


STAYS: tuple[Stay, ...] = (
    Stay(
        "Harbour House", "Veldmar", 4.7, 318, "A brick warehouse at the old quay, ten minutes from the station.",
        "harbour", _rooms(82, 124, 189, 14),
        _policies("from 3 pm to 10 pm", "until 11:30 am", "Dogs are welcome, $12 per night. No other pets.",
                  "Free until 48 hours before arrival"),
    ),
    Stay(
        "Pine Lodge", "Veldmar", 4.5, 204, "Wooden cabins between the trees, sauna included.",
        "forest", _rooms(76, 112, 165, 12),
        _policies("from 2 pm", "until 10 am", "No pets", "Free until 7 days before arrival"),
    ),
    Stay(
        "Lantern Inn", "Veldmar", 4.1, 167, "Plain rooms above a bakery in the middle of town.",
        "town", _rooms(54, 79, 121, 8),
        _policies("from 4 pm", "until 11 am", "No pets", "Not refundable"),
    ),
    Stay(
        "Ridge Hut", "Oberlund", 4.6, 92, "At 1,840 metres, with a view over three valleys.",
        "mountain", _rooms(61, 98, 150, 11),
        _policies("from 1 pm to 6 pm", "until 9:30 am", "Dogs on request", "Free until 14 days before arrival"),
    ),
)  # fmt: skip
STAYS_BY_SLUG = {stay.slug: stay for stay in STAYS}
