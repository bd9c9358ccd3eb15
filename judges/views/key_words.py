"""What may stand in checks and in a rubric, in short, for who is writing one."""

from __future__ import annotations

from judges.expectations import Kind
from judges.scorers.network_trace.values import KINDS

Explained = tuple[str, str]  # one key or several, and what they mean

CHECKS: tuple[Explained, ...] = (
    ("checks", "the list of checks; all of them must hold"),
    ("sites", "addresses by name: shop: [https://shop.example] is __SHOP__ in a url"),
    ("task_type", "retrieve, navigate or mutate; only for comparing as WebArena-Verified does"),
    ("name", "what the check is called"),
    ("key_point", "the key point that it settles: its text, or its number from 1"),
    ("evaluator", "network_event (without it) or agent_response, the agent's structured answer"),
)
REQUESTS: tuple[Explained, ...] = (
    ("url", "an address, a list of alternatives, or a pattern ^...$"),
    ("http_method", "GET, POST and so on; without it any that fits"),
    ("event_type", "navigation: a page that was opened; mutation: POST, PUT, PATCH, DELETE; other"),
    ("response_status", "one status or a list; -1: no response came"),
    ("last_event_only", "true (without it): the last one of its type; false: any"),
    ("should_not_exist", "true: there must be none like it"),
    ("query_params", "parameters of the address by name; a list are all values of one"),
    (
        "ignored_query_params, ignored_query_params_patterns",
        "parameters that do not matter; any other refutes the check",
    ),
    ("decode_base64_query", "true: parameters are read from base64 in the path, too"),
    ("post_data", "what was sent: fields of a form or keys of JSON; others do not matter"),
    ("ignored_post_data_params_patterns", "fields that do not matter"),
    (
        "query_params_schema, post_data_schema",
        f"by name, how a value is compared: {{type: number}}; {', '.join(KINDS)}",
    ),
    ("headers", "of the request, by name"),
    ("response_content", "keys of a JSON response, where the trace has it"),
    ("response_cookies", "never decided here: cookies are taken out on import"),
    ("expected", "the keys that WebArena-Verified puts there may stand under it"),
)
ANSWERS: tuple[Explained, ...] = (
    ("task_type, status", "of the answer: retrieve, navigate or mutate; such as success"),
    ("retrieved_data", "a value, or a list of them"),
    ("ordered", "true: in this order"),
    ("results_schema", "how each value is compared, as query_params_schema"),
    ("fields, fields_schema", "other parts of the answer by name or path, and how they are compared"),
)
RUBRIC: tuple[Explained, ...] = (
    ("nodes", "the list of claims and groups"),
    ("pass_score", "from which score it is a success, above 0 and up to 1; without it the judge says"),
)
NODES: tuple[Explained, ...] = (
    ("claim", "one sentence that is true or not"),
    ("group, children", "a heading, and the claims and groups below it"),
    ("critical", "true: if it does not hold, the group that it is in scores 0, whatever else holds"),
    ("strategy", "parallel (without it), or sequential: after the first that does not hold, the rest is skipped: 0"),
    ("about", "answer, pages, steps or screenshots; a group or the rubric may say it for all below"),
    ("sources", "of a claim about pages: cited (without it), or a list of addresses"),
    ("steps", "of a claim about steps or screenshots: all (without it), last, last 3, 4, 3-7, [0, 2]; counted from 0"),
    ("note", "what counts and what does not, for the model"),
    ("key_point", "the key point that it settles: its text, or its number from 1"),
    ("id", "a name of your own; without it the place, such as 2.1"),
)
KEYS: dict[Kind, tuple[tuple[str, tuple[Explained, ...]], ...]] = {
    Kind.NETWORK_CHECKS: (
        ("Every check", CHECKS),
        ("What must have been requested", REQUESTS),
        ("What the agent must have answered", ANSWERS),
    ),
    Kind.RUBRIC: (("The rubric", RUBRIC), ("Claims and groups", NODES)),
}
