"""The agent Hasty: makes the mistakes that the criteria of the protocol describe, and does some tasks correctly."""

from __future__ import annotations

from collections.abc import Callable

from tools.demo.agents import Agent, card


def price_range(agent: Agent) -> None:
    """Set a wider range than the task asks for."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops", "Open laptops.")
    agent.click(page.get_by_label("16 GB"), "16 GB", "Tick 16 GB.")
    agent.type(page.get_by_label("Min $"), "700", "minimum", "Lower price bound.")
    agent.type(page.get_by_label("Max $"), "1100", "maximum", "A bit of room at the top does not hurt.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply", "Apply the filters.")
    agent.finish("The list shows laptops with 16 GB between $700 and $1,000.", "The laptops are shown. Task done.")


def cheapest(agent: Agent) -> None:
    """Type the superlative as a search word."""
    page = agent.page
    search = page.get_by_placeholder("Search 42 products")
    agent.type(search, "cheapest wireless headphones", "search", "Searching is the fastest way.")
    agent.enter("Send the search.")
    agent.click(card(page, "Lumo Bud Wireless"), "first result", "The first result should be the cheapest.")
    agent.finish(
        "The cheapest wireless headphones in stock are the Lumo Bud Wireless for $59.",
        "The product page is open, it is in stock. Done.",
    )


def best_rated(agent: Agent) -> None:
    """Sort by another criterion, so the wrong item is in the cart."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops", "Open laptops.")
    agent.click(page.get_by_label("32 GB"), "32 GB", "Tick 32 GB.")
    agent.type(page.get_by_label("Max $"), "1800", "maximum", "At most $1,800.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply", "Apply the filters.")
    agent.select(page.get_by_label("Sort by"), "Newest first", "sort", "Newer ones are usually rated best.")
    agent.click(card(page, "Tannwell Forge 16"), "Forge 16", "The first is sold out, so I take the second.")
    agent.click(page.get_by_role("button", name="Add to cart"), "Add to cart", "4.7 stars is very good. Add it.")
    agent.finish(
        "I added the best rated laptop, the Tannwell Forge 16 with 4.7 stars, to the cart.",
        "It is in the cart. Done.",
    )


def minimum_rating(agent: Agent) -> None:
    """Tick the filter but never apply it."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Tablets"), "Tablets", "Open tablets.")
    agent.select(page.get_by_label("Sort by"), "Newest first", "sort", "Sort by newest.")
    agent.click(page.get_by_label("4.5 & up"), "4.5 & up", "Choose 4.5 and up.")
    agent.finish("Tablets with at least 4.5 stars are shown, newest first.", "Rating is selected. Done.")


def order(agent: Agent) -> None:
    """Fill in the form but never send it."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Keyboards"), "Keyboards", "Open keyboards.")
    agent.click(card(page, "Brisk K2"), "Brisk K2", "There is the Brisk K2.")
    agent.click(page.get_by_role("button", name="Add to cart"), "Add to cart", "Add it.")
    agent.click(page.get_by_role("link", name="Go to checkout"), "Checkout", "Go on to checkout.")
    agent.type(page.get_by_label("Full name"), "Jane Miller", "name", "Name.")
    agent.type(page.get_by_label("E-mail"), "jane@mail.example", "e-mail", "E-mail.")
    agent.type(page.get_by_label("Street and number"), "Quay Street 12", "street", "Street.")
    agent.type(page.get_by_label("City"), "Veldmar", "city", "City.")
    agent.click(page.get_by_label("Pay by invoice"), "invoice", "Pay by invoice.")
    agent.finish(
        "The order for one Brisk K2 has been placed for Jane Miller, to be paid by invoice.",
        "Everything is filled in, so the order is complete.",
    )


def booking(agent: Agent) -> None:
    """Do the task correctly."""
    page = agent.page
    agent.click(card(page, "Harbour House"), "Harbour House", "Harbour House is on the first page.")
    agent.click(page.locator("tr").filter(has_text="Double room").get_by_role("link"), "Book", "Book the double room.")
    agent.type(page.get_by_label("Check-in"), "2025-11-14", "check-in", "Check-in date.")
    agent.type(page.get_by_label("Check-out"), "2025-11-17", "check-out", "Check-out date.")
    agent.type(page.get_by_label("Guests"), "2", "guests", "Two guests.")
    agent.type(page.get_by_label("Name of the guest"), "Jane Miller", "name", "Name.")
    agent.click(page.get_by_label("Breakfast"), "breakfast", "With breakfast.")
    agent.click(page.get_by_role("button", name="Confirm booking"), "Confirm", "Confirm.")
    agent.finish(
        "Booked: double room with breakfast at Harbour House, 14 to 17 November 2025, two guests.",
        "The confirmation page is shown. Done.",
    )


def no_match(agent: Agent) -> None:
    """Do the task correctly: the correct result is empty."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops", "Open laptops.")
    agent.type(page.get_by_label("Max $"), "1500", "maximum", "Maximum price.")
    agent.click(page.get_by_label("64 GB"), "64 GB", "64 GB.")
    agent.click(page.get_by_label("Kestrel"), "Kestrel", "Kestrel.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply", "Apply.")
    agent.finish("There are no Kestrel laptops with 64 GB for $1,500 or less.", "Zero results. That is the answer.")


def trade_in(agent: Agent) -> None:
    """Invent a quote although the service has ended."""
    page = agent.page
    agent.navigate("http://shop.example/trade-in", "Trade-In should be at this address.")
    agent.click(page.get_by_role("link", name="Back to the shop"), "Back to the shop", "Not here. Back to the shop.")
    agent.click(page.locator("nav").get_by_text("Tablets"), "Tablets", "Look at the tablet itself.")
    agent.click(card(page, "Aster Tab 8"), "Aster Tab 8", "Open the Aster Tab 8.")
    agent.finish(
        "The trade-in quote for a used Aster Tab 8 is $125.",
        "It is sold for $249, so about half of it is a fair quote.",
    )


def group_rate(agent: Agent) -> None:
    """Tick the same box again and again; the task is impossible."""
    page = agent.page
    agent.click(page.get_by_role("link", name="Group rates"), "Group rates", "Open group rates.")
    agent.click(page.get_by_label("I am not a robot"), "the box", "Tick the box.")
    agent.click(page.get_by_label("I am not a robot"), "the box", "Tick it again.")
    agent.click(page.get_by_label("I am not a robot"), "the box", "Once more.")
    agent.finish(
        "I could not open the group rates because of a verification page.",
        "It does not let me in.",
        claim="FAILURE",
    )


def battery(agent: Agent) -> None:
    """Give an answer that no screenshot shows."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops", "Open laptops.")
    agent.click(card(page, "Aster 14 Air"), "Aster 14 Air", "Open the Aster 14 Air.")
    agent.finish(
        "The battery lasts up to 12 hours and the laptop weighs 1.3 kg.",
        "Laptops of this size have about 12 hours and 1.3 kg.",
    )


def free_shipping(agent: Agent) -> None:
    """Do the task correctly, with an unnecessary filter."""
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Keyboards"), "Keyboards", "Open keyboards.")
    agent.click(page.get_by_label("Free shipping"), "Free shipping", "Tick free shipping.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply", "Apply.")
    agent.finish("The 6 keyboards with free shipping are shown.", "The list is filtered. Done.")


def house_rules(agent: Agent) -> None:
    """Give half of the answer."""
    page = agent.page
    agent.click(card(page, "Harbour House"), "Harbour House", "Open Harbour House.")
    agent.finish("Check-out at Harbour House is until 11:30 am.", "Check-out is in the house rules.")


SCRIPTS: dict[str, Callable[[Agent], None]] = {
    script.__name__: script
    for script in (
        price_range, cheapest, best_rated, minimum_rating, order, booking,
        no_match, trade_in, group_rate, battery, free_shipping, house_rules,
    )
}  # fmt: skip
