"""Find secrets by the names next to them, by their shape, and in URLs anywhere in a text.

Every expression is bounded or cannot backtrack, so the time grows only with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from html import unescape
from urllib.parse import quote, unquote_plus

# --- names: of headers, cookies, query and form parameters, keys of JSON objects --------------------------------------

LONGEST_NAME = 1_000  # characters; longer names are unlikely

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

# A name is that of a secret if one of its words is one of these: `user[auth]`, `X-Session-Id`, `accessToken`.
SECRET_WORD = re.compile(
    "assertion|auth|authenticat(?:e|ion)|authenticity|authori[sz]ation|bearer|cookies?|creds|csrf|cvc|cvv|hmac|jw[est]|"
    "heslo|kennwort|mnemonic|nonce|oauth|otp|passcode|passkey|passwd|passwort|pswd|pw|pwd|saml|senha|sess|sessions?|sid|sig|"
    "ssn|tkn|totp|wachtwoord|xsrf"
)
# ... or if its letters and digits, without separators, contain one of these: `PHPSESSID`, `apikey`, `wpnonce`.
SECRET_PARTS = re.compile(
    "token|secret|password|passphrase|passwd|credential|signature|authoriz|authenticity|oauth|csrf|xsrf|sessid|"
    "sessionid|nonce|samlre|relaystate|codeverifier|contrase[nñ]a|motdepasse|cardnumber|"
    "пароль|密码|密碼|recoveryphrase|seedphrase|rememberme|cfclearance|fbdtsg|ltpa|oidcdata|"
    "(?:auth|login|session|sso)ticket|"
    "(?:verification|security|recovery|backup|sms|onetime|device|oob|mfa|2fa|login)codes?$|"
    "(?:user|login|new|old|current|confirm|repeat|db|database|enc|admin|root|ftp|smtp)pass$|"
    "(?:api|access|private|secret|signing|form|session|auth|app|consumer|subscription|encryption|client|shared|"
    "account|functions?|master|license|security)keys?$|"
    "(?:api|access|private|secret|session)key"
)
# ... or if the whole name is one of these, which are too common as words.
SECRET_WHOLE = re.compile(
    "pass[0-9]?|passwordhash|pin|sign|secureid|dpop|xclientcert|samlart|cookie2|cc|ccnum|ccnumber|clave|passe|psw|csc|cvn|"
    "crumb|ssid|tok|wresult|keypairid"
)
# Headers that are known only for secrets; as names of parameters they are ordinary words.
SECRET_HEADER = re.compile("x?(?:access|remember|key)")
# The parameter `code` is a secret next to one of these (in a URL, or anywhere); else it may be a voucher or a country.
OAUTH_IN_URL = frozenset({"state", "session_state", "iss", "scope"})
OAUTH_ANYWHERE = frozenset({"grant_type", "redirect_uri", "code_verifier", "client_id"})
OAUTH_SECRETS = ("code", "state")
# A `Policy` with its signature gives access; without one, it may be an insurance policy.
SIGNED = frozenset({"Signature", "Key-Pair-Id"})
LONG_STATE = 12  # characters; a `state` of this length in a form is not part of a postal address


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Return whether the value of ``name`` must not be stored. ``name`` is percent-decoded."""
    if len(name) > LONGEST_NAME:
        return True
    compact = _strip_name(name)
    if SECRET_WHOLE.fullmatch(compact) or SECRET_PARTS.search(compact):
        return True
    return any(SECRET_WORD.fullmatch(word.lower()) for word in WORD.findall(name))


def _strip_name(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def is_secret_header(name: str) -> bool:
    """As `is_secret` with more names; False for headers that only permit, such as Access-Control-Allow-Credentials."""
    secret = is_secret(name) or SECRET_HEADER.fullmatch(_strip_name(name)) is not None
    return secret and not name.lower().startswith("access-control-")


def secrets_together(fields: Mapping[str, str], *, in_url: bool) -> Collection[str]:
    """Return the names that are secrets only together: ``code`` and ``state`` of a callback, a signed ``Policy``."""
    signed = ("Policy",) if "Policy" in fields and fields.keys() & SIGNED else ()
    return signed + _secrets_of_oauth(fields, in_url=in_url)


def _secrets_of_oauth(fields: Mapping[str, str], *, in_url: bool) -> tuple[str, ...]:
    if "code" not in fields:
        return ()
    if fields.keys() & OAUTH_ANYWHERE or (in_url and fields.keys() & OAUTH_IN_URL):
        return OAUTH_SECRETS
    long_state = len(fields.get("state", "")) >= LONG_STATE and " " not in fields["state"]
    return OAUTH_SECRETS if long_state else ()


# --- texts ------------------------------------------------------------------------------------------------------------

REDACTED = "[redacted]"
REDACTED_IN_AUTHORITY = "%5Bredacted%5D"  # unescaped brackets would make it an IPv6 address
DEEPEST_URL = 6  # a URL in a parameter of a URL in a parameter of a URL ...; below that all encoded text is redacted
MOST_PARAMETERS = 20_000

# The beginnings of the shapes are searched first, because most texts have none.
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
# JSON Web Tokens are words with dots between. All such words are checked in code: an expression that fails inside a
# word would read the rest of the word again from each of its letters.
DOTTED = re.compile(r"[\w.-]++", re.ASCII)
JWT = "eyJ"
SHORTEST_HEAD, SHORTEST_PAYLOAD = 9, 4  # characters; of the first and the second word of a token
BEARER = re.compile(r"\b(bearer\s{1,4})[\w.~+/-]{16,}=*", re.IGNORECASE | re.ASCII)
USERINFO = re.compile(r"""(:(?:\\?/){2})[^/\\\s"'<>?#@]++@""")
QUERY = re.compile(r"""(?<=[?#])[^?#\s"'<>\\]+""")
PARAMETER = re.compile(r"""(?<=[?&;#])([^=?&;#\s"'<>\\/]{1,200}+)=([^&#\s"'<>\\]++)""")
FIRST_PARAMETER = re.compile(r"""([^=?&;#\s"'<>\\/]{1,200}+)=([^&#\s"'<>\\]++)""")  # matched at the start of a text
# password=abc&user=bob: a form that is not declared as one.
PAIRS = re.compile(r"""[^=&?#/\s"'<>{}();:,]{1,200}+=\S*+""")
OAUTH_PAIR = re.compile(r"(?:^|(?<=[&;]))([A-Za-z_]{1,30})=([^&;]*)")
# name: "value", name = 'value', \"name\":\"value\", "name": 123, name: ["value", and with &quot; in an attribute. The
# separator is matched first, and then the name before it, read backwards.
QUOTE = r"""(?:\\{0,64}+["'`]|&(?:quot|apos|#34|#39|#x22|#x27);)"""
SEPARATOR = re.compile(rf"""[:=]\s{{0,8}}+(?:(\[)\s{{0,8}}+)?((?:\\{{0,64}}+"){{3}}|{QUOTE}|(?=-?[0-9]))""")
NAME_BEFORE = re.compile(r"""\s{0,8}(?:\]?(?:["'`]\\{0,64}|;(?:touq|sopa|43#|93#|22x#|72x#)&))?([\w$.-]{1,100})""")
LONGEST_BEFORE = 190
DEEPEST_QUOTE = "\\" * 65  # JSON in a JSON text in a JSON text ..., seven levels: the whole text is redacted
# A group under ++ or *+ must not fail after it consumed text: up to Python 3.11.4 that text stayed consumed.
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
# As in a browser, quotes count only after an equals sign, and a tag ends at the first `>` outside of quotes.
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
    text = _redact_shapes(text)
    if "earer" in text or "EARER" in text:
        text = BEARER.sub(rf"\1{REDACTED}", text)
    if "@" in text:
        text = USERINFO.sub(rf"\1{REDACTED_IN_AUTHORITY}@", text)
    return _redact_assignments(_redact_queries(text, depth))


def scrub_lines(text: str) -> str:
    """As `scrub`, and redact the values of lines that begin with the name of a secret."""
    return scrub(LINE.sub(_redact_line, text))


def scrub_xml(text: str) -> str:
    """As `scrub_html`, and redact the content of elements with the name of a secret."""
    return scrub_html(ELEMENT.sub(_redact_element, text))


def scrub_html(text: str) -> str:
    """As `scrub`, and redact the values of inputs, text areas and meta elements with the name of a secret."""
    return scrub(TAG.sub(_redact_tag, text))


def redact_url(url: str, depth: int = DEEPEST_URL) -> str:
    """Redact user, path parameters, query and fragment of a URL, and of URLs in parameters."""
    url, hash_mark, fragment = USERINFO.sub(rf"\1{REDACTED_IN_AUTHORITY}@", url).partition("#")
    path, mark, query = url.partition("?")
    path = _redact_parameters(_redact_shapes(path), depth)
    return path + mark + redact_query(query, depth) + hash_mark + _redact_fragment(fragment, depth)


def redact_query(query: str, depth: int = DEEPEST_URL, *, in_url: bool = True) -> str:
    """Redact a urlencoded text, ``a=1&token=[redacted]``; everything else is unchanged."""
    pieces = query.split("&", MOST_PARAMETERS)
    if len(pieces) > MOST_PARAMETERS:
        pieces[-1] = REDACTED
    # Some servers read a semicolon as an ampersand; for others it is a part of the value.
    rows = [piece.split(";", MOST_PARAMETERS) if in_url else [piece] for piece in pieces]
    pairs = [[part.partition("=") for part in row] for row in rows]
    fields = {unquote_plus(name): unquote_plus(value) for row in pairs for name, _, value in row}
    together = secrets_together(fields, in_url=in_url)
    return "&".join(_redact_row(row, together, depth) for row in pairs)


def _redact_row(row: list[tuple[str, str, str]], together: Collection[str], depth: int) -> str:
    # The text after a secret may be a part of it.
    redacted: list[str] = []
    for pair in row:
        redacted.append(_redact_pair(pair, together, depth))
        if pair[2] and _is_secret_parameter(unquote_plus(pair[0]), together):
            break
    return ";".join(redacted)


def redact_value(name: str, value: str, together: Collection[str] = (), depth: int = DEEPEST_URL) -> str:
    return REDACTED if value and _is_secret_parameter(name, together) else _redact_inner(value, depth)


def _is_secret_parameter(name: str, together: Collection[str]) -> bool:
    # A name may be encoded twice, ``pass%2577ord``.
    return name in together or is_secret(name) or ("%" in name and is_secret(unquote_plus(name)))


def _redact_pair(pair: tuple[str, str, str], together: Collection[str], depth: int) -> str:
    name, equals, value = pair
    if not equals:
        return _redact_shapes(name)
    decoded = unquote_plus(value)
    redacted = redact_value(unquote_plus(name), decoded, together, depth)
    return name + equals + (value if redacted == decoded else quote(redacted, safe="[]"))


def _redact_inner(value: str, depth: int) -> str:
    """Redact the value of a parameter, which may be a URL or a text with secrets of its own."""
    if depth <= 0:
        return REDACTED if "%" in value or "=" in value else scrub(value, 0)
    if value.startswith(("/", "?", "#")) or "://" in value[:200]:
        return redact_url(value, depth - 1)
    if PAIRS.fullmatch(value):
        return redact_query(value, depth - 1, in_url=False)
    return scrub(value, depth - 1)


def _redact_fragment(fragment: str, depth: int) -> str:
    # ``#access_token=...`` of a callback, ``#/route?token=...`` of an application.
    route, mark, rest = fragment.partition("?")
    if mark:
        return _redact_shapes(route) + mark + redact_query(rest, depth)
    return redact_query(fragment, depth) if "=" in fragment else _redact_shapes(fragment)


def _redact_queries(text: str, depth: int) -> str:
    if "=" not in text:
        return text
    text = _redact_parameters(text, depth)
    return QUERY.sub(_redact_oauth_query, text) if "code=" in text else text


def _redact_oauth_query(match: re.Match[str]) -> str:
    text = match[0]
    fields = {name: unquote_plus(value) for name, value in OAUTH_PAIR.findall(text)}
    together = secrets_together(fields, in_url=True)
    return OAUTH_PAIR.sub(lambda pair: f"{pair[1]}={REDACTED}" if pair[1] in together else pair[0], text)


def _redact_parameters(text: str, depth: int) -> str:
    first = FIRST_PARAMETER.match(text)
    if first:
        text = _redact_parameter(first, depth) + text[first.end() :]
    return PARAMETER.sub(lambda match: _redact_parameter(match, depth), text)


def _redact_parameter(match: re.Match[str], depth: int) -> str:
    name, value = match[1], match[2]
    if is_secret(unquote_plus(name)):
        return f"{name}={REDACTED}"
    if "%3D" in value or "%3d" in value or "%25" in value:
        parts = value.split(";", MOST_PARAMETERS)
        return _redact_row([part.partition("=") for part in (f"{name}={parts[0]}", *parts[1:])], (), depth)
    return _cut_at_secret(match[0]) if ";" in value else match[0]


def _cut_at_secret(text: str) -> str:
    """Cut ``a=1;b=2`` after the first secret: the rest may belong to it."""
    done = 0
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if value and is_secret(unquote_plus(name)):
            return f"{text[:done]}{name}={REDACTED}"
        done += len(part) + 1
    return text


def _redact_shapes(text: str) -> str:
    if JWT in text:
        text = DOTTED.sub(_redact_jwt, text)
    return SHAPES.sub(REDACTED, text) if any(mark in text for mark in SHAPE_BEGINNINGS) else text


def _redact_jwt(match: re.Match[str]) -> str:
    """Return dotted words, cut where a token begins, even inside a word."""
    if JWT not in match[0]:
        return match[0]
    words = match[0].split(".")
    for index, word in enumerate(words[:-1]):
        start = word.find(JWT)
        if start >= 0 and len(word) - start >= SHORTEST_HEAD and len(words[index + 1]) >= SHORTEST_PAYLOAD:
            return ".".join([*words[:index], word[:start] + REDACTED])
    return match[0]


def _redact_assignments(text: str) -> str:
    """Redact values after the name of a secret, in the syntax of any language."""
    pieces, done = [], 0
    for found in SEPARATOR.finditer(text):
        start, end = found.span()
        name = NAME_BEFORE.match(text[max(start - LONGEST_BEFORE, 0) : start][::-1])
        if start < done or not name or not is_secret(name[1][::-1]):
            continue
        value = _choose_value_pattern(found).match(text, end)
        if value:
            pieces += [text[done:end], REDACTED + (found[2] if found[1] else "")]
            done = value.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def _choose_value_pattern(found: re.Match[str]) -> re.Pattern[str]:
    """Return the pattern of a value by its beginning: all values of a list, or up to the same quote."""
    quotation = found[2]
    if found[1]:
        return LIST_VALUE
    if quotation.startswith("&"):
        return ENTITY_VALUE
    return BLOCK_VALUE if quotation.count('"') == 3 else VALUES.get(quotation, ESCAPED_VALUE)


def _redact_line(match: re.Match[str]) -> str:
    return match[1] + REDACTED if is_secret(match[2]) else match[0]


def _redact_element(match: re.Match[str]) -> str:
    if not is_secret(match[2]) or not match[3].strip():
        return match[0]
    cdata = "<![CDATA[" if match[3].startswith("<!") else ""
    return f"<{match[1]}{cdata}{REDACTED}"


def _redact_tag(match: re.Match[str]) -> str:
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
    return f"<{match[1]}{ATTRIBUTE.sub(_redact_attribute, attributes)}{rest}"


def _redact_attribute(match: re.Match[str]) -> str:
    return f'{match[1]}="{REDACTED}"' if match[1].lower() in ("value", "content") else match[0]
