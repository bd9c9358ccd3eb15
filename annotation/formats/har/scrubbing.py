"""Secrets in running text: in URLs wherever they stand, by their shape, and beside a name that announces one.

Every expression is bounded or cannot go back over what it has read, so the time grows with the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from html import unescape
from urllib.parse import quote, unquote_plus

from annotation.formats.har.names import is_secret, secrets_together

REDACTED = "[redacted]"
REDACTED_IN_AUTHORITY = "%5Bredacted%5D"  # brackets there would make an IPv6 address of it
DEEPEST_URL = 6  # a URL in a parameter of a URL in a parameter of a URL ...; below that nothing encoded is kept
MOST_PARAMETERS = 20_000

# What each shape begins with is looked for first: most texts have none of it.
SHAPE_BEGINNINGS = (
    "AIza", "ya29.", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "xox", "AKIA", "ASIA", "sk-", "sk_",
    "glpat-", "ST-", "PT-", "TGT-", "-----BEGIN", "/bot",
)  # fmt: skip
SHAPES = re.compile(
    r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bgh[opsur]_\w{30,}|\bgithub_pat_\w{30,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bsk[-_](?:live_|test_|proj-|ant-)?[A-Za-z0-9_-]{20,}|\bglpat-[\w-]{20,}"
    r"|\b(?:ST|PT|TGT)-[0-9]{1,12}-[\w.-]{10,}"
    r"|(?<=/bot)[0-9]{3,20}:[\w-]{10,}"
    r"|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\w+/=\s\\-]*",
    re.ASCII,
)
# JSON Web Tokens are words with dots between. All words are looked at: an expression that fails where a word goes on
# would read the rest of it from each of its letters.
DOTTED = re.compile(r"[\w.-]++", re.ASCII)
JWT = "eyJ"
SHORTEST_HEAD, SHORTEST_PAYLOAD = 9, 4  # characters; of the first and the second word of a token
BEARER = re.compile(r"\b(bearer\s{1,4})[\w.~+/-]{16,}=*", re.IGNORECASE | re.ASCII)
USERINFO = re.compile(r"""(:(?:\\?/){2})[^/\\\s"'<>?#@]++@""")
QUERY = re.compile(r"""(?<=[?#])[^?#\s"'<>\\]+""")
PARAMETER = re.compile(r"""(?<=[?&;#])([^=?&;#\s"'<>\\/]{1,200}+)=([^&#\s"'<>\\]++)""")
FIRST_PARAMETER = re.compile(r"""([^=?&;#\s"'<>\\/]{1,200}+)=([^&#\s"'<>\\]++)""")  # matched where a text begins
# password=abc&user=bob: a form without a word about that.
PAIRS = re.compile(r"""[^=&?#/\s"'<>{}();:,]{1,200}+=\S*+""")
OAUTH_PAIR = re.compile(r"(?:^|(?<=[&;]))([A-Za-z_]{1,30})=([^&;]*)")
# name: "value", name = 'value', \"name\":\"value\", "name": 123, name: ["value", and with &quot; in an attribute: the
# separator, and backwards from it the name.
QUOTE = r"""(?:\\{0,64}+["'`]|&(?:quot|apos|#34|#39|#x22|#x27);)"""
SEPARATOR = re.compile(rf"""[:=]\s{{0,8}}+(?:(\[)\s{{0,8}}+)?((?:\\{{0,64}}+"){{3}}|{QUOTE}|(?=-?[0-9]))""")
NAME_BEFORE = re.compile(r"""\s{0,8}(?:\]?(?:["'`]\\{0,64}|;(?:touq|sopa|43#|93#|22x#|72x#)&))?([\w$.-]{1,100})""")
LONGEST_BEFORE = 190
DEEPEST_QUOTE = "\\" * 65  # JSON in a JSON text in a JSON text ..., seven levels of it: nothing of it is kept
# What is repeated in ++ or *+ never fails once it has taken something: up to Python 3.11.4 that something stayed taken.
VALUES = {
    '"': re.compile(r'(?:[^"\\\r\n]|\\.?)++'),
    "'": re.compile(r"(?:[^'\\\r\n]|\\.?)++"),
    "`": re.compile(r"(?:[^`\\]|\\.?)++"),
    "": re.compile(r"-?[0-9][0-9.]{0,40}+(?!\w)"),
}
ESCAPED_VALUE = re.compile(r"""[^"'`\\\r\n]++""")
ENTITY_VALUE = re.compile(r"""[^&"'<>\r\n][^"'<>\r\n]*?(?=&(?:quot|apos|#34|#39|#x2[27]);|["'<>\r\n]|\Z)""")
BLOCK_VALUE = re.compile(r"""(?!\\")[^"]+?(?=\\?"|\Z)""")
LIST_VALUE = re.compile(r"""[^\]\r\n]++""")
# A line of a plain text: DB_PASSWORD=X, password: X, Authorization: Basic X.
LINE = re.compile(
    r"^([ \t]{0,40}+(?:export[ \t]{1,4}+)?([\w.-]{1,100}+)[ \t]{0,8}+[:=][ \t]{0,8}+)([^\s][^\r\n]*+)", re.MULTILINE
)
# Quotes count behind an equals sign alone, as in a browser, and a tag ends at the first `>` that is not in them.
TAG = re.compile(
    r"""<(input|meta|button|textarea)\b((?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!"[^"]*+"|'[^']*+')))*+)(>[^<]*+)?""",
    re.IGNORECASE,
)
TAG_BEGINS = re.compile(r"<(?:input|meta|button|textarea)\b", re.IGNORECASE)
MOST_TAGS = 20_000  # of these, in one body
ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]{1,50}+)\s{0,8}+=\s{0,8}+("[^"]*"|'[^']*'|[^\s"'<>]+)""")
# <SecretAccessKey>X</SecretAccessKey>, <wsse:Password Type="x"><![CDATA[X]]></wsse:Password>
ELEMENT = re.compile(
    r"<((?:[\w.-]{1,100}+:)?([\w.-]{1,100}+)(?:\s[^<>]*+)?>)((?:<!\[CDATA\[[\s\S]*?(?=\]\]>|\Z)|[^<]++))"
)


def scrub(text: str, depth: int = DEEPEST_URL) -> str:
    """Return ``text`` without secrets; unchanged if it has none."""
    if DEEPEST_QUOTE in text:
        return REDACTED
    text = _shapes(text)
    if "earer" in text or "EARER" in text:
        text = BEARER.sub(rf"\1{REDACTED}", text)
    if "@" in text:
        text = USERINFO.sub(rf"\1{REDACTED_IN_AUTHORITY}@", text)
    return _assignments(_in_queries(text, depth))


def scrub_lines(text: str) -> str:
    """As `scrub`, for a plain text: a line that begins with a secret's name loses what it says."""
    return scrub(LINE.sub(_line, text))


def scrub_xml(text: str) -> str:
    """As `scrub_html`, and what elements have in them whose name is a secret's."""
    return scrub_html(ELEMENT.sub(_element, text))


def scrub_html(text: str) -> str:
    """As `scrub`, and the values of inputs, text areas and meta elements whose name is a secret's."""
    return scrub(TAG.sub(_tag, text))


def redact_url(url: str, depth: int = DEEPEST_URL) -> str:
    """Redact user, path parameters, query and fragment of a URL, and of URLs in parameters."""
    url = USERINFO.sub(rf"\1{REDACTED_IN_AUTHORITY}@", url)
    before, mark, rest = _cut(url, "?")
    if not mark:
        before, mark, rest = _cut(url, "#")
    before = _parameters(_shapes(before), depth)
    query, hash_mark, fragment = rest.partition("#") if mark == "?" else ("", "", rest)
    if mark == "#":
        return before + mark + _fragment(fragment, depth)
    return before + mark + redact_query(query, depth) + hash_mark + _fragment(fragment, depth)


def redact_query(query: str, depth: int = DEEPEST_URL, *, in_url: bool = True) -> str:
    """Redact an urlencoded text, ``a=1&token=[redacted]``; anything else stays as it was written."""
    pieces = query.split("&", MOST_PARAMETERS)
    if len(pieces) > MOST_PARAMETERS:
        pieces[-1] = REDACTED
    # Some servers take a semicolon for an ampersand; to the others it is a part of the value.
    rows = [piece.split(";", MOST_PARAMETERS) if in_url else [piece] for piece in pieces]
    pairs = [[part.partition("=") for part in row] for row in rows]
    fields = {unquote_plus(name): unquote_plus(value) for row in pairs for name, _, value in row}
    together = secrets_together(fields, in_url=in_url)
    return "&".join(_redacted_row(row, together, depth) for row in pairs)


def _redacted_row(row: list[tuple[str, str, str]], together: Collection[str], depth: int) -> str:
    """What stands between two ampersands; nothing is kept behind a secret."""
    kept: list[str] = []
    for pair in row:
        kept.append(_redacted_pair(pair, together, depth))
        if pair[2] and _secret(unquote_plus(pair[0]), together):
            break
    return ";".join(kept)


def redact_value(name: str, value: str, together: Collection[str] = (), depth: int = DEEPEST_URL) -> str:
    return REDACTED if value and _secret(name, together) else _inner(value, depth)


def _secret(name: str, together: Collection[str]) -> bool:
    """A name may be encoded twice, ``pass%2577ord``."""
    return name in together or is_secret(name) or ("%" in name and is_secret(unquote_plus(name)))


def _redacted_pair(pair: tuple[str, str, str], together: Collection[str], depth: int) -> str:
    name, equals, value = pair
    if not equals:
        return _shapes(name)
    decoded = unquote_plus(value)
    kept = redact_value(unquote_plus(name), decoded, together, depth)
    return name + equals + (value if kept == decoded else quote(kept, safe="[]"))


def _inner(value: str, depth: int) -> str:
    """A parameter's value may be a URL, or a text, with secrets of its own."""
    if depth <= 0:
        return REDACTED if "%" in value or "=" in value else scrub(value, 0)
    if value.startswith(("/", "?", "#")) or "://" in value[:200]:
        return redact_url(value, depth - 1)
    if PAIRS.fullmatch(value):
        return redact_query(value, depth - 1, in_url=False)
    return scrub(value, depth - 1)


def _cut(url: str, mark: str) -> tuple[str, str, str]:
    """Before a mark, the mark, and after it; nothing is cut at a ``?`` that belongs to the fragment."""
    before, found, rest = url.partition(mark)
    return (url, "", "") if mark == "?" and "#" in before else (before, found, rest)


def _fragment(fragment: str, depth: int) -> str:
    """``#access_token=...`` of a callback, ``#/route?token=...`` of an application."""
    route, mark, rest = fragment.partition("?")
    if mark:
        return _shapes(route) + mark + redact_query(rest, depth)
    return redact_query(fragment, depth) if "=" in fragment else _shapes(fragment)


def _in_queries(text: str, depth: int) -> str:
    """Parameters of whatever looks like a URL in running text; `code` beside `state` as in a URL."""
    if "=" not in text:
        return text
    text = _parameters(text, depth)
    return QUERY.sub(_query, text) if "code=" in text else text


def _query(match: re.Match[str]) -> str:
    text = match[0]
    fields = {name: unquote_plus(value) for name, value in OAUTH_PAIR.findall(text)}
    together = secrets_together(fields, in_url=True)
    return OAUTH_PAIR.sub(lambda pair: f"{pair[1]}={REDACTED}" if pair[1] in together else pair[0], text)


def _parameters(text: str, depth: int) -> str:
    first = FIRST_PARAMETER.match(text)
    if first:
        text = _parameter(first, depth) + text[first.end() :]
    return PARAMETER.sub(lambda match: _parameter(match, depth), text)


def _parameter(match: re.Match[str], depth: int) -> str:
    name, value = match[1], match[2]
    if is_secret(unquote_plus(name)):
        return f"{name}={REDACTED}"
    if "%3D" in value or "%3d" in value or "%25" in value:
        parts = value.split(";", MOST_PARAMETERS)
        return _redacted_row([part.partition("=") for part in (f"{name}={parts[0]}", *parts[1:])], (), depth)
    return _before_secret(match[0]) if ";" in value else match[0]


def _before_secret(text: str) -> str:
    """``a=1;b=2`` up to the first secret: what is behind one may belong to it."""
    done = 0
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if value and is_secret(unquote_plus(name)):
            return f"{text[:done]}{name}={REDACTED}"
        done += len(part) + 1
    return text


def _shapes(text: str) -> str:
    if JWT in text:
        text = DOTTED.sub(_without_jwt, text)
    return SHAPES.sub(REDACTED, text) if any(mark in text for mark in SHAPE_BEGINNINGS) else text


def _without_jwt(match: re.Match[str]) -> str:
    """Dotted words up to the one in which a token begins; what begins in the middle of a word is one too."""
    if JWT not in match[0]:
        return match[0]
    words = match[0].split(".")
    for index, word in enumerate(words[:-1]):
        start = word.find(JWT)
        if start >= 0 and len(word) - start >= SHORTEST_HEAD and len(words[index + 1]) >= SHORTEST_PAYLOAD:
            return ".".join([*words[:index], word[:start] + REDACTED])
    return match[0]


def _assignments(text: str) -> str:
    """Values beside a name, whatever language that is written in."""
    pieces, done = [], 0
    for found in SEPARATOR.finditer(text):
        start, end = found.span()
        name = NAME_BEFORE.match(text[max(start - LONGEST_BEFORE, 0) : start][::-1])
        if start < done or not name or not is_secret(name[1][::-1]):
            continue
        value = _values_of(found).match(text, end)
        if value:
            pieces += [text[done:end], REDACTED + (found[2] if found[1] else "")]
            done = value.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def _values_of(found: re.Match[str]) -> re.Pattern[str]:
    """What a value is made of, by how it begins: all values of a list, else up to the same quote."""
    quotation = found[2]
    if found[1]:
        return LIST_VALUE
    if quotation.startswith("&"):
        return ENTITY_VALUE
    return BLOCK_VALUE if quotation.count('"') == 3 else VALUES.get(quotation, ESCAPED_VALUE)


def _line(match: re.Match[str]) -> str:
    return match[1] + REDACTED if is_secret(match[2]) else match[0]


def _element(match: re.Match[str]) -> str:
    if not is_secret(match[2]) or not match[3].strip():
        return match[0]
    cdata = "<![CDATA[" if match[3].startswith("<!") else ""
    return f"<{match[1]}{cdata}{REDACTED}"


def _tag(match: re.Match[str]) -> str:
    attributes, rest = match[2], match[3] or ""
    given = [(found[1].lower(), unescape(found[2].strip("\"'"))) for found in ATTRIBUTE.finditer(attributes)]
    secret = any(
        is_secret(value) if key in ("name", "id", "property", "autocomplete") else value.lower() == "password"
        for key, value in given
        if value and key in ("name", "id", "property", "autocomplete", "type")
    )
    if not secret:
        return match[0]
    if match[1].lower() == "textarea" and len(rest) > 1:
        rest = f">{REDACTED}"
    return f"<{match[1]}{ATTRIBUTE.sub(_blank_attribute, attributes)}{rest}"


def _blank_attribute(match: re.Match[str]) -> str:
    return f'{match[1]}="{REDACTED}"' if match[1].lower() in ("value", "content") else match[0]
