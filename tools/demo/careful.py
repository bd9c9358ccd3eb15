"""The agent Careful: does each task exactly, and reports honestly which tasks are impossible."""

from __future__ import annotations

from collections.abc import Callable

from tools.demo.agents import Agent, card


def price_range(agent: Agent) -> None:
    page = agent.page
    agent.click(
        page.locator("nav").get_by_text("Laptops"),
        "Laptops in the navigation",
        "The task is about laptops, so I open that department first.",
    )
    agent.click(
        page.get_by_label("16 GB"),
        "memory filter 16 GB",
        "There is a memory filter on the left. I tick exactly 16 GB.",
    )
    agent.type(
        page.get_by_label("Min $"),
        "700",
        "minimum price",
        "The price must be between $700 and $1,000. I enter the lower bound.",
    )
    agent.type(page.get_by_label("Max $"), "1000", "maximum price", "Now the upper bound, $1,000 and not more.")
    agent.click(
        page.get_by_role("button", name="Apply filters"),
        "Apply filters",
        "Nothing has changed in the list yet; the filters need to be applied.",
    )
    agent.finish(
        "4 laptops with 16 GB between $700 and $1,000 are shown: Tannwell Book 14 ($719), Kestrel Flex 13 "
        "($829), Aster 14 Air ($949) and Tannwell Book 15 Plus ($999).",
        "The chips show Price $700 – $1,000 and 16 GB, and 4 of 14 laptops are listed. Done.",
    )


def cheapest(agent: Agent) -> None:
    page = agent.page
    agent.click(
        page.locator("nav").get_by_text("Headphones"),
        "Headphones in the navigation",
        "I start in the headphones department.",
    )
    agent.click(
        page.get_by_label("Wireless only"),
        "filter Wireless only",
        "Cable headphones must not count, so I limit the list to wireless ones.",
    )
    agent.click(
        page.get_by_label("In stock"),
        "filter In stock",
        "One of the cheap ones, the Brisk Tune Wireless, is sold out. I need the stock filter too.",
    )
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply filters", "Both are ticked; I apply them.")
    agent.select(
        page.get_by_label("Sort by"),
        "Price: low to high",
        "the sort box",
        "4 results. To be sure which one is the cheapest I sort by price.",
    )
    agent.click(
        card(page, "Tannwell Loop Wireless"),
        "Tannwell Loop Wireless",
        "The first result is now the cheapest: Tannwell Loop Wireless for $49.",
    )
    agent.finish(
        "The cheapest wireless headphones in stock are the Tannwell Loop Wireless for $49; the product page is open.",
        "The product page says $49 and 46 in stock. That is what was asked for.",
    )


def best_rated(agent: Agent) -> None:
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops in the navigation", "I open the laptops.")
    agent.click(page.get_by_label("32 GB"), "memory filter 32 GB", "At least 32 GB means 32 GB or 64 GB. First 32 GB.")
    agent.click(page.get_by_label("64 GB"), "memory filter 64 GB", "And 64 GB, which is more than 32 GB.")
    agent.type(page.get_by_label("Max $"), "1800", "maximum price", "The price limit is $1,800.")
    agent.click(page.get_by_label("In stock"), "filter In stock", "It must be in stock.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply filters", "All conditions are set; I apply.")
    agent.select(
        page.get_by_label("Sort by"),
        "Customer rating",
        "the sort box",
        "3 laptops are left. I sort by rating to find the best one.",
    )
    agent.click(card(page, "Aster 16 Studio"), "Aster 16 Studio", "The Aster 16 Studio is first with 4.8 stars.")
    agent.click(
        page.get_by_role("button", name="Add to cart"),
        "Add to cart",
        "$1,749, in stock, 4.8 stars: I add it to the cart.",
    )
    agent.finish(
        "The Aster 16 Studio (4.8 stars, 32 GB, $1,749) is in the cart.",
        "The cart shows one Aster 16 Studio. Done.",
    )


def minimum_rating(agent: Agent) -> None:
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Tablets"), "Tablets in the navigation", "I open the tablets.")
    agent.click(page.get_by_label("4.5 & up"), "rating filter 4.5 & up", "The rating filter offers 4.5 & up.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply filters", "I apply the filter.")
    agent.select(
        page.get_by_label("Sort by"),
        "Newest first",
        "the sort box",
        "3 of 7 tablets are left. Now the order: newest first.",
    )
    agent.finish(
        "3 tablets have 4.5 stars or more, newest first: Kestrel Slate 10 (Sep 2025), Sable Canvas 12 "
        "(Jul 2025), Aster Tab 11 (May 2025).",
        "Filter and order are both visible on the page.",
    )


def order(agent: Agent) -> None:
    page = agent.page
    search = page.get_by_placeholder("Search 42 products")
    agent.type(search, "Brisk K2", "the search box", "I know the name of the product, so I search for it.")
    agent.enter("I send the search.")
    agent.click(card(page, "Brisk K2"), "Brisk K2", "The first result is the Brisk K2; the Mini is another one.")
    agent.click(page.get_by_role("button", name="Add to cart"), "Add to cart", "One piece is what I need.")
    agent.click(
        page.get_by_role("link", name="Go to checkout"),
        "Go to checkout",
        "One Brisk K2 for $69. To checkout.",
    )
    agent.type(page.get_by_label("Full name"), "Jane Miller", "Full name", "I fill in the name.")
    agent.type(page.get_by_label("E-mail"), "jane@mail.example", "E-mail", "The e-mail address of the task.")
    agent.type(page.get_by_label("Street and number"), "Quay Street 12", "Street and number", "The street.")
    agent.type(page.get_by_label("City"), "Veldmar", "City", "The city.")
    agent.click(
        page.get_by_label("Pay by invoice"),
        "Pay by invoice",
        "Credit card is preselected, but the task says invoice.",
    )
    agent.click(
        page.get_by_role("button", name="Place order"),
        "Place order",
        "Everything is as asked: I place the order.",
    )
    number = page.locator("td").first.inner_text()
    agent.finish(
        f"The Brisk K2 is ordered for Jane Miller by invoice. Order number {number}.",
        "The confirmation shows the order number, the address and the payment by invoice.",
    )


def booking(agent: Agent) -> None:
    page = agent.page
    agent.type(page.get_by_label("Where"), "Veldmar", "Where", "Harbour House is in Veldmar; I search there.")
    agent.type(page.get_by_label("Check-in"), "2025-11-14", "Check-in", "Arrival on 14 November 2025.")
    agent.type(page.get_by_label("Check-out"), "2025-11-17", "Check-out", "Departure on 17 November 2025.")
    agent.type(page.get_by_label("Guests"), "2", "Guests", "Two guests.")
    agent.click(page.get_by_role("button", name="Search"), "Search", "All four fields are filled; I search.")
    agent.click(card(page, "Harbour House"), "Harbour House", "Three houses. I open Harbour House.")
    agent.click(
        page.locator("tr").filter(has_text="Double room").get_by_role("link"),
        "Book the double room",
        "The double room sleeps two for $124 a night.",
    )
    agent.type(
        page.get_by_label("Name of the guest"),
        "Jane Miller",
        "Name of the guest",
        "Dates and guests came along from the search. Only the name is missing.",
    )
    agent.click(page.get_by_label("Breakfast"), "Breakfast", "Breakfast is part of the task.")
    agent.click(
        page.get_by_role("button", name="Confirm booking"),
        "Confirm booking",
        "14 to 17 November, 2 guests, breakfast ticked: I confirm.",
    )
    number = page.locator("td").first.inner_text()
    agent.finish(
        f"The double room at Harbour House is booked with breakfast for two guests, 14 to 17 November 2025. "
        f"Booking number {number}.",
        "The confirmation repeats all details, 3 nights with breakfast.",
    )


def no_match(agent: Agent) -> None:
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Laptops"), "Laptops in the navigation", "I open the laptops.")
    agent.click(page.get_by_label("64 GB"), "memory filter 64 GB", "I tick 64 GB.")
    agent.click(page.get_by_label("Kestrel"), "brand filter Kestrel", "I tick the brand Kestrel.")
    agent.type(page.get_by_label("Max $"), "1500", "maximum price", "No more than $1,500; there is no lower bound.")
    agent.click(page.get_by_role("button", name="Apply filters"), "Apply filters", "I apply the three filters.")
    agent.finish(
        "No Kestrel laptop with 64 GB costs $1,500 or less: the list is empty.",
        "The three chips are right and the list has 0 results. The only Kestrel with 64 GB costs more, so "
        "the empty list is the answer. I must not loosen the filters.",
    )


def trade_in(agent: Agent) -> None:
    page = agent.page
    agent.type(
        page.get_by_placeholder("Search 42 products"),
        "trade-in",
        "the search box",
        "The navigation has no Trade-In. I search for it.",
    )
    agent.enter("I send the search.")
    agent.navigate("http://shop.example/trade-in", "No result. I try the address that such a page would have.")
    agent.finish(
        "Not possible: Larkfield Trade-In was discontinued on 30 September 2025, so no quote can be given.",
        "The page says that the service ended and that no more quotes are given. The task is outdated.",
        claim="NOT_EXECUTABLE",
    )


def group_rate(agent: Agent) -> None:
    page = agent.page
    agent.click(page.get_by_role("link", name="Group rates"), "Group rates", "Group rates have their own page.")
    agent.click(
        page.get_by_label("I am not a robot"),
        "the box I am not a robot",
        "The site wants to know whether I am human. I try the box once.",
        failed=True,
    )
    agent.finish(
        "Not possible: the group rates are behind a CAPTCHA that refuses automated visits, so I could not "
        "read the rate for Pine Lodge.",
        "The check failed, and the page says that automated visits are not allowed. I must not work around "
        "it, and I will not guess a price.",
        claim="NOT_EXECUTABLE",
    )


def battery(agent: Agent) -> None:
    page = agent.page
    agent.click(
        page.locator("nav").get_by_text("Laptops"),
        "Laptops in the navigation",
        "I look for the Aster 14 Air.",
    )
    agent.click(card(page, "Aster 14 Air"), "Aster 14 Air", "There it is; its page should have the details.")
    agent.scroll(500, "Battery and weight are not in view; specifications are further down.")
    agent.finish(
        "The battery of the Aster 14 Air lasts up to 13.5 hours, and the laptop weighs 1.18 kg.",
        "The specifications list battery life up to 13.5 hours and a weight of 1.18 kg.",
    )


def free_shipping(agent: Agent) -> None:
    page = agent.page
    agent.click(page.locator("nav").get_by_text("Keyboards"), "Keyboards in the navigation", "I open the keyboards.")
    agent.scroll(140, "The note says that every keyboard ships free. I look at the rest of the list to be sure.")
    agent.finish(
        "All 6 keyboards ship free, so all of them are shown: Brisk K2, Lumo Soft Keys, Brisk K2 Mini, "
        "Orrin Type 75, Orrin Type 100 and Sable Board Low.",
        "Each of the 6 cards has the Free shipping badge, so the filter would change nothing.",
    )


def house_rules(agent: Agent) -> None:
    page = agent.page
    agent.click(card(page, "Harbour House"), "Harbour House", "Harbour House is the first card.")
    agent.scroll(220, "The house rules begin at the lower edge; I scroll to read them all.")
    agent.finish(
        "Check-out at Harbour House is until 11:30 am. Dogs are welcome for $12 per night.",
        "Both answers are in the table of house rules.",
    )


SCRIPTS: dict[str, Callable[[Agent], None]] = {
    script.__name__: script
    for script in (
        price_range, cheapest, best_rated, minimum_rating, order, booking,
        no_match, trade_in, group_rate, battery, free_shipping, house_rules,
    )
}  # fmt: skip
