"""The 12 faults of the challenge: tasks, scripts and answers. Apart from its fault, each trajectory does its task."""

from __future__ import annotations

from tools.demo.agents import Agent, card
from tools.demo.challenge import ACTION, ANSWER, SCREENSHOT, Fault
from tools.demo.tasks import DemoTask

_SHOP, _STAY = "http://shop.example/", "http://stay.example/"


def _department(agent: Agent, name: str) -> None:
    agent.click(agent.page.locator("nav").get_by_text(name), f"{name} in the navigation", f"I open {name.lower()}.")


def _press(agent: Agent, button: str, thought: str) -> None:
    agent.click(agent.page.get_by_role("button", name=button), button, thought)


def _add_to_cart(agent: Agent, product: str, thought: str) -> None:
    agent.click(card(agent.page, product), product, thought)
    _press(agent, "Add to cart", "The product page is open. I add it to the cart.")


def _check_out(agent: Agent, **address: str) -> None:
    """Fill in the fields of the address that are given, and place the order."""
    agent.click(agent.page.get_by_role("link", name="Go to checkout"), "Go to checkout", "It is in the cart.")
    for field, text in address.items():
        label = {"name": "Full name", "email": "E-mail", "street": "Street and number", "city": "City"}[field]
        agent.type(agent.page.get_by_label(label), text, field, f"I fill in: {label.lower()}.")
    _press(agent, "Place order", "Credit card is chosen already. I place the order.")


def _fill_booking(
    agent: Agent, house: str, room: str, dates: tuple[str, str], guests: str, name: str, *, breakfast: bool
) -> None:
    """Open the form of a room and fill it in; do not confirm it."""
    page = agent.page
    agent.click(card(page, house), house, f"{house} is on the first page.")
    agent.click(page.locator("tr").filter(has_text=room).get_by_role("link"), f"Book, {room}", f"I book the {room}.")
    agent.type(page.get_by_label("Check-in"), dates[0], "check-in", "The first day.")
    agent.type(page.get_by_label("Check-out"), dates[1], "check-out", "The day of departure.")
    agent.type(page.get_by_label("Guests"), guests, "guests", "The number of guests.")
    agent.type(page.get_by_label("Name of the guest"), name, "name of the guest", "The name.")
    if breakfast:
        agent.click(page.get_by_label("Breakfast"), "breakfast", "Breakfast is asked for.")


def _wrong_filter_value(agent: Agent) -> None:
    _department(agent, "Tablets")
    agent.click(agent.page.get_by_label("4 & up", exact=True), "rating filter 4 & up", "I set the rating filter.")
    agent.type(agent.page.get_by_label("Max $"), "400", "maximum price", "At most $400.")
    _press(agent, "Apply filters", "Both filters are set. I apply them.")
    agent.finish(
        "The list shows 4 tablets that cost no more than $400 and meet the rating.",
        "4 of 7 tablets are left, each for less than $400. The task is done.",
    )


def _hallucinated_answer(agent: Agent) -> None:
    search = agent.page.get_by_placeholder("Search 42 products")
    agent.type(search, "Orrin Wide 34", "the search box", "I search for the monitor by its name.")
    agent.enter("I send the search.")
    agent.finish("Shipping the Orrin Wide 34 costs $4.99.", "The monitor is the first result. The task is done.")


def _wrong_date(agent: Agent) -> None:
    dates = ("2025-12-12", "2025-12-15")
    _fill_booking(agent, "Pine Lodge", "Double room", dates, "2", "Tom Reed", breakfast=False)
    _press(agent, "Confirm booking", "Everything is filled in. I confirm.")
    agent.finish(
        "A double room at Pine Lodge is booked for Tom Reed and one more guest, for three nights from 12 December.",
        "The page confirms the booking. The task is done.",
    )


def _submit_missing(agent: Agent) -> None:
    dates = ("2025-12-09", "2025-12-11")
    _fill_booking(agent, "Harbour House", "Single room", dates, "1", "Ada Lind", breakfast=True)
    agent.finish(
        "The single room at Harbour House is booked with breakfast for Ada Lind, from 9 to 11 December 2025.",
        "Dates, guest and breakfast are all correct. The task is done.",
    )


def _look_alike_product(agent: Agent) -> None:
    _department(agent, "Laptops")
    _add_to_cart(agent, "Aster 14 Go", "There is the Aster 14, in stock. I open it.")
    agent.finish("The Aster 14 is in the cart.", "The cart shows one laptop. The task is done.")


def _wrong_number_of_guests(agent: Agent) -> None:
    dates = ("2025-11-20", "2025-11-22")
    _fill_booking(agent, "Pine Lodge", "Family room", dates, "2", "Mia Berg", breakfast=True)
    _press(agent, "Confirm booking", "Everything is filled in. I confirm.")
    agent.finish(
        "The family room at Pine Lodge is booked with breakfast from 20 to 22 November 2025 for Mia Berg.",
        "The page confirms the booking. The task is done.",
    )


def _wrong_sort_order(agent: Agent) -> None:
    _department(agent, "Tablets")
    agent.select(agent.page.get_by_label("Sort by"), "Customer rating", "the sort box", "I sort the list.")
    agent.click(card(agent.page, "Sable Canvas 12"), "Sable Canvas 12", "The first of the list is the one to open.")
    agent.finish("The newest tablet is the Sable Canvas 12. Its product page is open.", "The page is open. Done.")


def _wrong_address(agent: Agent) -> None:
    _department(agent, "Speakers")
    _add_to_cart(agent, "Lumo Glow", "There is the Lumo Glow.")
    _check_out(agent, name="Jane Miller", email="jane@mail.example", street="Quay Street 21", city="Veldmar")
    agent.finish(
        "One Lumo Glow is ordered for Jane Miller, Quay Street 12, Veldmar, and paid by credit card.",
        "The page thanks for the order. The task is done.",
    )


def _answer_for_another_item(agent: Agent) -> None:
    agent.click(agent.page.get_by_role("link", name="All houses"), "All houses", "I open the list of houses.")
    agent.click(card(agent.page, "Harbour House"), "Harbour House", "I open Harbour House.")
    agent.finish("A family room at Harbour House costs $124 a night.", "The table of rooms has the price. Done.")


def _item_left_in_cart(agent: Agent) -> None:
    _department(agent, "Keyboards")
    _add_to_cart(agent, "Brisk K2 Mini", "There is the Brisk K2.")
    _department(agent, "Keyboards")
    _add_to_cart(agent, "Brisk K2", "That was the smaller model. This is the Brisk K2.")
    agent.finish("The Brisk K2 is in the cart.", "The cart shows the Brisk K2 for $69. The task is done.")


def _ignored_error(agent: Agent) -> None:
    _department(agent, "Monitors")
    _add_to_cart(agent, "Orrin View 24", "There is the Orrin View 24.")
    _check_out(agent, name="Tom Reed", email="tom@mail.example", street="Mill Lane 3")
    agent.finish("The order for one Orrin View 24 is placed.", "I have pressed Place order. The task is done.")


def _filter_not_applied(agent: Agent) -> None:
    page = agent.page
    _department(agent, "Headphones")
    agent.click(page.get_by_label("Wireless only"), "filter Wireless only", "They must be wireless.")
    _press(agent, "Apply filters", "I apply the filter.")
    agent.click(page.get_by_label("In stock"), "filter In stock", "They must be in stock as well.")
    agent.finish("The list shows the wireless headphones that are in stock.", "Both filters are ticked. Done.")


def _task(fault: str, text: str, website: str, length: int, *key_points: str) -> DemoTask:
    return DemoTask(fault, text, website, length, key_points)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "Wrong filter value",
        _task(
            "wrong_filter_value",
            "Show tablets with a rating of at least 4.5 stars that cost no more than $400.",
            _SHOP,
            5,
            "Rating filter 4.5 and up is applied",
            "Price is no more than $400",
        ),
        _wrong_filter_value,
        failed=1,
        type="range_not_exact",
        explanation="The task asks for at least 4.5 stars. The agent clicks 4 & up at step 1, so the list at step 4 "
        "has three tablets with 4.0 to 4.3 stars.",
        findings=((False, 4), (True, 4)),
        step=1,
        evidence=((ACTION, "4 & up"), (SCREENSHOT, "4 & up")),
    ),
    Fault(
        "Hallucinated answer",
        _task(
            "hallucinated_answer",
            "How much does shipping cost for the Orrin Wide 34 monitor?",
            _SHOP,
            3,
            "The shipping cost of the Orrin Wide 34 is given as its page shows it",
        ),
        _hallucinated_answer,
        failed=2,
        type="hallucination",
        explanation="No page shows $4.99. The agent stops at the results of the search, which have no shipping cost, "
        "and never opens the product page, which says $6.",
        findings=((False, 2),),
        step=2,
        evidence=((ANSWER, "$4.99"),),
    ),
    Fault(
        "Wrong date",
        _task(
            "wrong_date",
            "Book a double room without breakfast at Pine Lodge for two guests from 12 to 14 December 2025, for "
            "Tom Reed.",
            _STAY,
            8,
            "Double room without breakfast at Pine Lodge for two guests",
            "12 to 14 December 2025",
            "The booking is confirmed for Tom Reed",
        ),
        _wrong_date,
        failed=3,
        type="range_not_exact",
        explanation="The stay ends on 14 December. The agent types 2025-12-15 at step 3, and the confirmation at "
        "step 7 says three nights instead of two.",
        findings=((True, 7), (False, 7), (True, 7)),
        step=7,
        evidence=((SCREENSHOT, "15 December 2025, 3 nights"), (ANSWER, "three nights")),
    ),
    Fault(
        "Submit missing",
        _task(
            "submit_missing",
            "Book a single room with breakfast at Harbour House for one guest from 9 to 11 December 2025, for "
            "Ada Lind.",
            _STAY,
            9,
            "Single room with breakfast at Harbour House for one guest",
            "9 to 11 December 2025",
            "The booking is confirmed for Ada Lind",
        ),
        _submit_missing,
        failed=7,
        type="not_submitted",
        explanation="The form is filled in, but Confirm booking is never clicked. Step 7 still shows the open form.",
        findings=((True, 7), (True, 7), (False, 7)),
        step=7,
        evidence=((SCREENSHOT, "Confirm booking"), (ANSWER, "is booked")),
    ),
    Fault(
        "Look-alike product",
        _task(
            "look_alike_product",
            "Add the Aster 14 laptop that has 16 GB of memory to the cart.",
            _SHOP,
            4,
            "The Aster 14 with 16 GB is chosen",
            "It is in the cart",
        ),
        _look_alike_product,
        failed=1,
        type="wrong_item",
        explanation="The Aster 14 Go, opened at step 1, has 8 GB. The Aster 14 Air has 16 GB.",
        findings=((False, 1), (False, 3)),
        step=1,
        evidence=((ACTION, "Aster 14 Go"), (SCREENSHOT, "8 GB · In stock · Sep 2024")),
    ),
    Fault(
        "Wrong number of guests",
        _task(
            "wrong_number_of_guests",
            "Book a family room with breakfast at Pine Lodge for three guests from 20 to 22 November 2025, for "
            "Mia Berg.",
            _STAY,
            10,
            "Family room with breakfast at Pine Lodge for three guests",
            "20 to 22 November 2025",
            "The booking is confirmed for Mia Berg",
        ),
        _wrong_number_of_guests,
        failed=4,
        type="range_not_exact",
        explanation="The task names three guests. The agent types 2 at step 4, and the confirmation at step 8 says "
        "2 guests.",
        findings=((False, 8), (True, 8), (True, 8)),
        step=8,
        evidence=((SCREENSHOT, "Family room, 2 guests"),),
    ),
    Fault(
        "Wrong sort order",
        _task(
            "wrong_sort_order",
            "Open the product page of the newest tablet.",
            _SHOP,
            4,
            "Newest, by sorting on the date",
            "The product page is open",
        ),
        _wrong_sort_order,
        failed=1,
        type="wrong_item",
        explanation="The list is sorted by customer rating at step 1. The Sable Canvas 12 is of July 2025; step 2 also "
        "shows the Tannwell Leaf 10 of October 2025.",
        findings=((False, 2), (False, 3)),
        step=2,
        evidence=(
            (ACTION, "Sable Canvas 12"),
            (SCREENSHOT, "12 GB · In stock · Jul 2025"),
            (SCREENSHOT, "6 GB · In stock · Oct 2025"),
        ),
    ),
    Fault(
        "Wrong address",
        _task(
            "wrong_address",
            "Order one Lumo Glow speaker as a guest for Jane Miller, jane@mail.example, Quay Street 12, Veldmar, "
            "and pay by credit card.",
            _SHOP,
            10,
            "One Lumo Glow in the order",
            "Name, e-mail and address as given",
            "Payment by credit card",
            "The order is placed",
        ),
        _wrong_address,
        failed=6,
        type="other",
        explanation="The agent types Quay Street 21 at step 6, and the order at step 9 goes there. The answer names "
        "Quay Street 12, which the agent never typed.",
        findings=((True, 9), (False, 9), (True, 9), (True, 9)),
        step=9,
        evidence=((SCREENSHOT, "Quay Street 21"), (ANSWER, "Quay Street 12")),
    ),
    Fault(
        "Answer for another item",
        _task(
            "answer_for_another_item",
            "What does a family room at Harbour House cost per night?",
            _STAY,
            2,
            "The price of a family room at Harbour House is given",
        ),
        _answer_for_another_item,
        failed=2,
        type="wrong_answer",
        explanation="$124 is the price of the double room. The row of the family room at step 2 says $189 a night.",
        findings=((False, 2),),
        step=2,
        evidence=((SCREENSHOT, "$189 a night"), (ANSWER, "$124")),
    ),
    Fault(
        "Item left in the cart",
        _task(
            "item_left_in_cart",
            "Add the Brisk K2 keyboard to the cart, and nothing else.",
            _SHOP,
            3,
            "The Brisk K2 is in the cart",
            "Nothing else is in the cart",
        ),
        _item_left_in_cart,
        failed=2,
        type="extra_action",
        explanation="At step 2 the agent adds the Brisk K2 Mini and later leaves it there. The cart at step 6 has two "
        "keyboards for $128.",
        findings=((True, 6), (False, 6)),
        step=6,
        evidence=((SCREENSHOT, "Brisk K2 Mini"), (SCREENSHOT, "$128")),
    ),
    Fault(
        "Ignored error",
        _task(
            "ignored_error",
            "Order one Orrin View 24 monitor as a guest for Tom Reed, tom@mail.example, Mill Lane 3, Oberlund, and "
            "pay by credit card.",
            _SHOP,
            10,
            "One Orrin View 24 in the order",
            "Name, e-mail and address as given",
            "The order is placed",
        ),
        _ignored_error,
        failed=8,
        type="not_submitted",
        explanation="The city is empty, so the shop refuses the order and says so at step 8. The agent ignores this "
        "and claims that the order is placed.",
        findings=((True, 8), (False, 8), (False, 8)),
        step=8,
        evidence=((SCREENSHOT, "Please fill in every field."), (ANSWER, "is placed")),
    ),
    Fault(
        "Filter not applied",
        _task(
            "filter_not_applied",
            "Show wireless headphones that are in stock.",
            _SHOP,
            4,
            "Wireless headphones are listed",
            "Stock filter is applied",
        ),
        _filter_not_applied,
        failed=4,
        type="filter_missing",
        explanation="In stock is ticked at step 3 and never applied. The list at step 4 still has the Brisk Tune "
        "Wireless, which is sold out.",
        findings=((True, 4), (False, 4)),
        step=4,
        evidence=((SCREENSHOT, "Sold out · Oct 2023"), (ANSWER, "in stock")),
    ),
)
