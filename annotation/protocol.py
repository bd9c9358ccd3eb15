"""The terms of the human protocol: criteria, failure types, causes. No Django; `completeness` has the rules.

Source: the human evaluation protocol of Online-Mind2Web, version 1 (the one enforced by default) and version 2 (in
which annotators do the task themselves first); the wording here is our own.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from annotation.records import Verdict

MINIMUM_LABELS = 3
REASONING_LIMIT = 10_000  # characters; longer than any honest reasoning, short enough for a page
# Fillers, blanks and an empty note head: invisible, but in the Unicode categories of visible characters.
BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U0001d159"


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the protocol with its definition, as shown next to the choice.

    Criteria have an example of what ``counts`` and of what ``fails``, and a pattern of the ``wording`` that they match.
    """

    code: str
    name: str
    definition: str
    counts: str = ""
    fails: str = ""
    wording: re.Pattern[str] | None = None


def words(*alternatives: str) -> re.Pattern[str]:
    """Return a pattern for any of the ``alternatives`` (patterns) as whole words, in any case."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(alternatives)})(?!\w)", re.IGNORECASE)


# Parts of the patterns below. They are narrow, because a hint that is always shown is useless.
_NUMBER = r"(?:[$€£]\s?)?\d[\w.,/]*"
_COUNT = rf"(?:{_NUMBER}|one|two|three|four|five|six|seven|eight|nine|ten|an? (?:day|week|month|year|hour|mile))"
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?)"
)
_MEASURE = r"\d+(?:\.\d+)?\s?(?:GB|TB|MP|inch(?:es)?|mm|cm)"
_COLOUR = r"black|white|red|blue|green|gr[ae]y|pink|brown|beige|yellow|purple|silver"


VERDICT_RULES: dict[Verdict, str] = {
    Verdict.FAILURE: "At least one requirement of the task was not satisfied, or the answer is not supported.",
    Verdict.SUCCESS: "Every requirement of the task is satisfied and can be seen in the steps; where there are none, "
    "in the answer and its pages.",
    Verdict.NOT_EXECUTABLE: "Nobody could have done the task: the site, the task or the run itself was broken.",
}

CRITERIA: tuple[Term, ...] = (
    Term(
        "filter_effect",
        "Filters are applied and confirmed",
        "A requested filter counts only when its effect is visible: selected and applied, with the results or the "
        "page showing it. Ticking a box without applying it does not count.",
        counts="“4 stars and up” is ticked, Apply is pressed, and the list shows 4 stars and more.",
        fails="The box is ticked, but the agent leaves the page before the list has changed.",
        wording=words(
            r"filter(?:s|ed|ing)?",
            "only",
            "in stock",
            "available",
            r"that (?:are|is|have|has|offer|include|ship|allow|accept)s?",
            r"with (?:a |an |at least |free )?(?:rating|reviews?|memory|shipping|delivery)",
            r"\d(?:\.\d)?[ -]stars?|rated",
            _MEASURE,
        ),
    ),
    Term(
        "exact_range",
        "Ranges are exact",
        "Price, date, size and similar bounds must be those of the task. A wider or narrower range is a failure, "
        "even when the item that was found happens to fit.",
        counts="The task says under $500; the maximum price is set to 500 and nothing else.",
        fails="The task says under $500; the agent picks the range $250 to $500 of the list.",
        wording=words(
            rf"(?:under|over|below|above|within|up to|at least|at most|exactly) {_COUNT}",
            rf"(?:no )?(?:less|more|fewer|later|earlier) than {_COUNT}",
            rf"between {_COUNT}|between .{{1,30}} and {_COUNT}",
            rf"from (?:\w+ )?\d[\w ,:]{{0,20}} (?:to|until|through) (?:\w+ )?{_NUMBER}",
            rf"{_NUMBER}\s?[-–]\s?{_NUMBER}",
            rf"{_NUMBER} (?:\w+ )?(?:or|and) (?:more|less|fewer|higher|lower|up|above|below|later|earlier|older|newer)",
            rf"(?:before|after|since|until|by) (?:the )?(?:\d[\w:]*|{_MONTH})",
            "(?:price|age|date|size|salary|year) range",
            "maximum|minimum",
        ),
    ),
    Term(
        "superlative",
        "Superlatives come from sorting or filtering",
        "Cheapest, newest, best rated and the like must be established with the sort order or a filter of the site, "
        "not with a word typed into the search box.",
        counts="The list is sorted by price, lowest first, and the first item that qualifies is taken.",
        fails="“cheapest laptop” is typed into the search box and the first hit is taken.",
        wording=words(
            "cheapest|lowest|highest|newest|latest|oldest|earliest|nearest|closest|shortest|longest|fastest|quickest",
            "largest|smallest|biggest|lightest|heaviest",
            r"best(?! (?:buy|western)\b)",
            r"(?<!at )(?:most|least) (?!of\b)\w+",
            r"top[ -](?:rated|selling|ranked|\d+)",
            r"low(?:est)? to high(?:est)?|high(?:est)? to low(?:est)?",
            "(?:sort|rank)(?:ed)? by",
        ),
    ),
    Term(
        "filter_required",
        "Some requirements only count as a filter",
        "Where the site offers a filter for a requirement, typing the requirement into the search box is not enough.",
        counts="The site has a filter for memory, and “16 GB” is chosen there.",
        fails="The site has a filter for memory, but “laptop 16 GB” is typed as search words.",
        wording=words(
            r"filter(?:s|ed|ing)?",
            _MEASURE,
            "size|colou?r|brand|material|category|genre",
            _COLOUR,
            r"\d(?:\.\d)?[ -]stars?",
            "refurbished|wireless|vegan|vegetarian|gluten[ -]free|full[ -]time|part[ -]time|remote|electric|hybrid",
        ),
    ),
    Term(
        "submission",
        "Submit or show the result where the task asks for it",
        "A filled form that was never submitted, or a result that was never displayed, is not done.",
        counts="The request is sent, and the page confirms it.",
        fails="Every field is filled, and the agent stops in front of the button.",
        wording=words(
            "submit|send|reserve|buy|subscribe|register|sign (?:me )?up|enrol{1,2}|cancel|fill (?:in|out)",
            r"(?<!the )(?<!a )(?:order|book|schedule|request|rate|review|draft|post|save|download|create|write|leave)"
            r"(?= (?:an?|the|my|me|our|it|this|one|two|three|\d))",
            r"(?:add|put|move|save)(?= .*\b(?:to|in|into) .*(?:cart|bag|basket|list|favou?rites|calendar|registry))",
            r"apply for|get (?:an? )?(?:\w+ )?quote|make an? (?:\w+ )?(?:appointment|reservation|booking|purchase)",
        ),
    ),
    Term(
        "empty_result",
        "An empty result can be a success",
        "When every action was right and nothing matches, the empty list is the correct answer.",
        counts="All filters are as asked, and the page says that nothing was found.",
        fails="The list is empty because a filter was set that the task does not ask for.",
    ),
    Term(
        "already_satisfied",
        "No filter is needed when everything shown already qualifies",
        "If all displayed items satisfy the requirement, a filter for it need not be set.",
        counts="The task asks for free entry, and every museum in the list is free.",
        fails="The first page happens to qualify, but the list goes on with items that do not.",
    ),
    Term(
        "hallucination",
        "Claims must be visible",
        "An action that is claimed but was not done, or an answer that no screenshot shows, is a failure.",
        counts="The price in the answer can be read in the screenshot of step 12.",
        fails="The answer names a price, and no screenshot shows it.",
        wording=words(
            r"(?:^|(?<=[.?!;:,] )|(?<=and )|(?<=until ))(?:what|which|who|when|where)",
            "how (?:many|much|long|far|often|old|big|tall)|tell me|find out|whether|(?:may|can|do|is it) (?:i|we|it)",
            "(?:number|count|amount|name|price|cost|rate|address|phone number|opening hours|weight|score) (?:of|for)",
        ),
    ),
)


QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")  # quoted text is to be typed or found; it is not a requirement


def wording(task: str) -> dict[str, tuple[str, ...]]:
    """Return the criteria that match the wording of a task, with the matching words, each once and in order.

    A hint for the reader, not a rule: every criterion applies to every task.
    """
    said, found = QUOTED.sub("", task), {}
    for term in CRITERIA:
        hits = [match[0].strip().rstrip(".,") for match in term.wording.finditer(said)] if term.wording else []
        if hits:
            found[term.code] = tuple(dict.fromkeys(hits))
    return found


def touched(task: str) -> frozenset[str]:
    """Return the codes of the criteria that match the wording of a task, such as a range or a superlative."""
    return frozenset(wording(task))


FAILURE_TYPES: tuple[Term, ...] = (
    Term(
        "filter_missing",
        "Filter not applied",
        "A required filter was never set, or was set and never applied.",
    ),
    Term("range_not_exact", "Range not exact", "A price, date, size or similar bound differs from the task's."),
    Term(
        "superlative_by_search",
        "Superlative not by sort or filter",
        "Cheapest, newest or similar was typed as a search word instead of sorted or filtered.",
    ),
    Term(
        "search_for_filter",
        "Search used for a filter",
        "The site has a filter; the agent typed words instead.",
    ),
    Term(
        "not_submitted",
        "Not submitted or not shown",
        "The last step of a form, or the display of a result, is missing.",
    ),
    Term(
        "wrong_item",
        "Wrong item or page",
        "The agent ended on an item, page or account other than the one asked for.",
    ),
    Term(
        "wrong_answer",
        "Wrong or incomplete answer",
        "The final answer is wrong or lacks a part that was asked for.",
    ),
    Term("hallucination", "Hallucination", "The agent claims something that no screenshot or action supports."),
    Term(
        "extra_action",
        "Unwanted side effect",
        "The agent did something that the task does not allow or ask for.",
    ),
    Term("loop", "Loop or no progress", "The agent repeated actions without effect, or gave up before the end."),
    Term("other", "Other", "None of the above; the reasoning says what."),
)

CAUSES: tuple[Term, ...] = (
    Term("blocked", "CAPTCHA or blocked", "The site refused the agent: a CAPTCHA, an access wall, a ban."),
    Term("site_down", "Site down", "The site or the page did not answer, or answered with an error."),
    Term("task_outdated", "Task outdated", "What the task asks for no longer exists on the site."),
    Term("agent_bug", "Agent bug", "The agent's harness crashed or produced unusable steps."),
    Term("system_error", "System error", "The recording is broken: screenshots missing or of something else."),
)

# Reasons that can decide an adjudication: the criteria, and others.
DECIDING: tuple[Term, ...] = (
    *CRITERIA,
    Term("key_point", "A key point of the task", "A requirement that the task states was met, or was not."),
    Term("not_executable", "Nobody could have done it", "The site, the task or the recording was broken."),
    Term("other", "Another reason", "None of the criteria; the reasoning says which."),
)

# How the agent's way compares with the annotator's own attempt (version 2 of the protocol).
PATHS: tuple[Term, ...] = (
    Term("as_short", "As short as mine", "It needed no more steps than I did."),
    Term("longer", "Longer than mine", "It got there with detours or repeated steps."),
    Term("hack", "A way around", "It got the result in a way that the task does not intend, as by a guessed address."),
    Term("not_solved", "Not fully solved", "It did not get as far as I did."),
    Term("not_comparable", "Not comparable", "I could not do the task, or the site has changed since."),
)

# Marks on single steps, only where the submission asks for them. They belong to no version of the protocol.
PROCESS_LABELS: tuple[Term, ...] = (
    Term("wrong", "Wrong", "The step is a mistake: it does something other than what the task needs here."),
    Term("unnecessary", "Unnecessary", "The task can be done without the step: a repetition, a detour, no effect."),
    Term("side_effect", "Side effect", "The step changes something that the task does not ask to change."),
)
NOT_COMPARABLE = "not_comparable"  # one of `PATHS`: the annotator could not do the task, so has no steps

PATH_CODES = frozenset(term.code for term in PATHS)


def is_blank(text: str) -> bool:
    """Return whether a text has no visible letter, number, punctuation or symbol.

    Marks alone, private-use and unassigned characters do not count, because others cannot read them. The verifier has
    the same rule for Unicode 3.2, which is the same in every Python, and accepts all later characters.
    """
    return not any(unicodedata.category(each)[0] in "LNPS" and each not in BLANK_LETTERS for each in text)
