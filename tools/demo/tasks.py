"""The tasks of the demo benchmark, in the format of an Online-Mind2Web task set with added key points."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_SHOP, _STAY = "http://shop.example/", "http://stay.example/"


@dataclass(frozen=True, slots=True)
class DemoTask:
    """One task; ``name`` is the name of its scripts, ``suffix`` marks a replaced task."""

    name: str
    text: str
    website: str
    reference_length: int
    key_points: tuple[str, ...]
    suffix: str = ""

    @property
    def task_id(self) -> str:
        """Return 32 hexadecimal digits of the text's hash, followed by the suffix."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32] + self.suffix

    @property
    def level(self) -> str:
        if self.reference_length <= 5:
            return "easy"
        return "medium" if self.reference_length <= 10 else "hard"

    def as_json(self) -> dict[str, object]:
        return {
            "task_id": self.task_id,
            "confirmed_task": self.text,
            "website": self.website,
            "reference_length": self.reference_length,
            "level": self.level,
            "key_points": list(self.key_points),
        }


TASKS: tuple[DemoTask, ...] = (
    DemoTask(
        "price_range",
        "Show laptops with 16 GB of memory that cost between $700 and $1,000.",
        _SHOP,
        5,
        ("Laptops are listed", "Memory filter 16 GB is applied", "Price range is exactly $700 to $1,000"),
    ),
    DemoTask(
        "cheapest",
        "Find the cheapest wireless headphones that are in stock and open their product page.",
        _SHOP,
        6,
        ("Wireless headphones", "In stock", "Cheapest, by sorting on price", "The product page is open"),
    ),
    DemoTask(
        "best_rated",
        "Add the best rated laptop with at least 32 GB of memory that costs no more than $1,800 and is in stock "
        "to the cart.",
        _SHOP,
        9,
        (
            "At least 32 GB of memory",
            "No more than $1,800",
            "In stock",
            "Best rated, by sorting on rating",
            "Added to the cart",
        ),
    ),
    DemoTask(
        "minimum_rating",
        "Show tablets with a rating of at least 4.5 stars, newest first.",
        _SHOP,
        4,
        ("Tablets are listed", "Rating filter 4.5 and up is applied", "Sorted by newest first"),
    ),
    DemoTask(
        "order",
        "Order one Brisk K2 keyboard as a guest for Jane Miller, jane@mail.example, Quay Street 12, Veldmar, and "
        "pay by invoice.",
        _SHOP,
        11,
        (
            "One Brisk K2 in the order",
            "Name, e-mail and address as given",
            "Payment by invoice",
            "The order is placed",
        ),
    ),
    DemoTask(
        "booking",
        "Book a double room with breakfast at Harbour House in Veldmar for two guests from 14 to 17 November 2025, "
        "for Jane Miller.",
        _STAY,
        10,
        (
            "Double room at Harbour House for two guests",
            "14 to 17 November 2025",
            "Breakfast is included",
            "The booking is confirmed for Jane Miller",
        ),
    ),
    DemoTask(
        "no_match",
        "Show Kestrel laptops with 64 GB of memory that cost no more than $1,500.",
        _SHOP,
        5,
        ("Brand filter Kestrel is applied", "Memory filter 64 GB is applied", "Price no more than $1,500"),
    ),
    DemoTask(
        "trade_in",
        "Get a quote for a used Aster Tab 8 from Larkfield Trade-In.",
        _SHOP,
        5,
        ("The Trade-In service is used for an Aster Tab 8", "A quote is shown"),
    ),
    DemoTask(
        "group_rate",
        "Find the group rate for 20 people at Pine Lodge.",
        _STAY,
        3,
        ("The group rates are open", "The rate for 20 people at Pine Lodge is given"),
    ),
    DemoTask(
        "battery",
        "How long does the battery of the Aster 14 Air last, and how much does the laptop weigh?",
        _SHOP,
        3,
        ("Battery life of the Aster 14 Air", "Weight of the Aster 14 Air"),
    ),
    DemoTask(
        "free_shipping",
        "Show all keyboards that ship free.",
        _SHOP,
        1,
        ("Keyboards are listed", "All that are shown ship free"),
    ),
    DemoTask(
        "house_rules",
        "Until what time is check-out at Harbour House, and may I bring a dog?",
        _STAY,
        2,
        ("Check-out time of Harbour House", "Whether a dog may come"),
        suffix="_110325",
    ),
)
TASKS_BY_NAME = {task.name: task for task in TASKS}
