"""Client of all judges for model endpoints, through the APIs in `apis`. Does not use Django or the network.

A scorer uses only `Asker`: it builds a `Prompt`, and gets a `Reply` or one of the exceptions below. `client`
implements concurrency, retries, limits, budget, the cache of replies and the trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class ImageRef:
    """An image, named by the SHA-256 of the screenshot's original bytes; its judge-ready JPEG is sent."""

    digest: str


@dataclass(frozen=True, slots=True)
class GivenImage(ImageRef):
    """An image that is not in the store, such as a page of a PDF: ``data`` is a JPEG and is sent unchanged.

    ``digest`` is the SHA-256 of ``data``. The image stays in memory as long as its prompt.
    """

    data: bytes = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image in a prompt. ``media_type`` is stated in the data URL; the bytes are always JPEG."""

    image: ImageRef
    media_type: str = "image/jpeg"
    detail: str = "high"


Part = str | SentImage


@dataclass(frozen=True, slots=True)
class Prompt:
    """A system text and one or more user messages, each a sequence of texts and images."""

    system: str
    messages: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as counted by the endpoint; None if it does not state them.

    ``prompt`` includes those that were read from its cache (``cached``) and written to it (``written``), and
    ``completion`` the thoughts (``reasoning``), however the API counts.
    """

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    written: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that arrived.

    ``text`` is the text of the model, "" for none. ``data`` is a structured answer that fits its schema, else None.
    ``refusal`` is the model's refusal, or why the endpoint filtered the reply. ``cut`` is True if the reply stopped at
    its length limit. ``problem`` says why a structured answer could not be read, after an attempt to repair it.
    ``usage`` counts this answer and its repair, whether paid now or from the cache. ``tokens`` are those of the text
    with the natural logarithms of their probabilities, None if they are not stated.
    """

    text: str
    data: Mapping[str, Any] | None = None
    refusal: str = ""
    cut: bool = False
    problem: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    tokens: tuple[tuple[str, float], ...] | None = field(default=None, repr=False)

    def unusable(self) -> str:
        """Return why no verdict can be read from this reply, "" if one may be."""
        if self.refusal:
            return f"The model refused: {self.refusal}"
        if self.cut:
            return "The reply was cut off at its length limit."
        return "" if self.text.strip() or self.data is not None else "The reply is empty."


class CallFailed(Exception):
    """No reply after all attempts, or a permanent error; the message is for the maintainer.

    ``passing`` is True if a later attempt may succeed: the endpoint was busy, slow or unreachable.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class BudgetSpent(Exception):
    """The run's budget is spent: no more calls are made, and earlier replies stay stored."""


class QuotaSpent(BudgetSpent):
    """A quota of the benchmark is used up, by this run and others."""


class NotConfigured(CallFailed):
    """The endpoint does not exist or has no key."""


class Asker(Protocol):
    """Interface through which a scorer asks a model."""

    async def ask(
        self,
        prompt: Prompt,
        *,
        stage: str,
        step: int | None = None,
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> Reply:
        """Return the model's reply to a prompt.

        With ``schema`` (a JSON schema of an object, every property required) the answer is requested in that form, if
        the judge's output mode allows it. Otherwise, or if the endpoint cannot, the reply is text only. ``stage`` and
        ``step`` name the call in the trace; later stages are served first. Another ``vote`` asks the same prompt again,
        with the judge's seed plus the vote (if a seed is sent) and its own key in the cache. Raises CallFailed or
        BudgetSpent.
        """
        ...

    async def find_route(self, origin: str, destination: str, mode: str) -> Route | str:
        """Return the route between two addresses, or why there is none; ``mode`` is one of `maps.MODES`.

        Answers are stored in the trace and found there again, as those of models. Raises CallFailed, and NotConfigured
        without a maps endpoint.
        """
        ...


@dataclass(frozen=True, slots=True)
class Route:
    """A route between two addresses: ``distance`` in metres, ``travel_time`` in seconds."""

    distance: int
    travel_time: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model server. Raises NotConfigured for a key with characters that a header cannot contain.

    The key is never shown: not in ``repr``, not in a log, not in a database row.
    """

    name: str
    base_url: str
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\x21-\x7e]*", self.key):
            raise NotConfigured(
                f"{self.variable} contains spaces or other characters that are invalid in a key. Set it again."
            )

    @property
    def identity(self) -> tuple[str, str]:
        """Return name and address: a name alone can later point to another server."""
        return self.name, self.base_url

    @property
    def variable(self) -> str:
        """Return the environment variable with the key; ``<variable>_FILE`` may name a file instead."""
        return f"JUDGE_API_KEY_{self.name.upper()}"


@dataclass(frozen=True, slots=True)
class Generation:
    """Settings of a model call, stored as JSON in `Judge.generation`; every field is part of the fingerprint.

    That JSON omits fields ``added`` later with their default value, so that fingerprints do not change.
    """

    temperature: float = field(
        default=0.0,
        metadata={
            "help": "0 for the most repeatable replies; -1 sends none. Not sent to reasoning models, nor to anthropic "
            "with an effort."
        },
    )
    max_tokens: int = field(
        default=0, metadata={"help": "Longest reply in tokens. 0: 2,048, or 16,384 for reasoning models."}
    )
    seed: int = field(
        default=0,
        metadata={"help": "Sent with every call; -1 sends none. The APIs responses and anthropic have no seed."},
    )
    dialect: Literal["auto", "classic", "reasoning"] = field(
        default="auto",
        metadata={
            "help": "classic: send max_tokens and temperature. reasoning: send max_completion_tokens and no "
            "temperature. auto: by the model's name, and by what the endpoint refuses."
        },
    )
    reasoning_effort: Literal["", "none", "minimal", "low", "medium", "high", "xhigh"] = field(
        default="",
        metadata={
            "help": "Sent unchanged to OpenAI's APIs. An effort that the endpoint does not support is an error. "
            "anthropic: adaptive thinking with this effort (minimal as low); for models up to Claude 4.5, thinking "
            "with a share of the longest reply: minimal 10%, low 20%, medium 50%, high 80%, xhigh 90%, at least 1,024 "
            "tokens. none sends nothing. gemini: the thinking level (none as minimal, xhigh as high); for Gemini 2 the "
            "same shares, and 0 tokens for none."
        },
    )
    output: Literal["schema", "tool", "text"] = field(
        default="schema",
        metadata={
            "help": "How structured answers are requested: JSON schema, tool call, or text. With api=anthropic, "
            "schema and tool both send a tool call; with an effort, the model may answer in text."
        },
    )
    reasoning: Literal["auto", "yes", "no"] = field(
        default="auto",
        metadata={
            "help": "Whether the model thinks before it answers, and so needs longer replies. auto: by its name "
            "(OpenAI's o and gpt-5, Gemini 2.5 and later, DeepSeek R1, Qwen 3, gpt-oss, Grok 4, every name with "
            "thinking or reasoning), and by its replies.",
            "added": True,
        },
    )
    top_p: float = field(default=-1.0, metadata={"help": "Sent with every call, unless -1.", "added": True})
    extra_body: str = field(
        default="",
        metadata={
            "label": "Further fields",
            "help": 'A JSON object of further fields of the request, such as {"service_tier": "flex"}. Costs are '
            "computed as without it. Put no secrets into it: it is published with the judge.",
            "added": True,
        },
    )
    api: Literal["chat", "responses", "anthropic", "gemini"] = field(
        default="chat",
        metadata={
            "label": "API",
            "help": "chat: OpenAI's chat completions, which most endpoints have. responses: OpenAI's Responses API "
            "(replies are not stored there). anthropic: Anthropic's Messages, at an address such as "
            "https://api.anthropic.com/v1. gemini: Gemini's generateContent, at an address such as "
            "https://generativelanguage.googleapis.com/v1beta.",
            "added": True,
        },
    )
    prompt_cache: bool = field(
        default=False,
        metadata={
            "label": "Mark for the cache",
            "help": "Only anthropic: mark the system text, and the text before the first image, for the endpoint's "
            "cache, which keeps them for 5 minutes. The first call pays 1.25 times the price of these tokens, later "
            "ones the price of cached tokens; calls at the same time may all pay as the first. Texts below the model's "
            "minimum (1,024 tokens or more) are not cached. Other endpoints cache without a mark.",
            "added": True,
        },
    )
    logprobs: bool = field(
        default=False,
        metadata={
            "label": "Log probabilities",
            "help": "Ask for the log probabilities of the tokens of replies. If the endpoint gives them, judgments of "
            "scorers that read one verdict (not rubrics) store as confidence the probability of the verdict's "
            "word, given the text before it. It measures the last choice, not how often the judge is right. Anthropic "
            "gives none, reasoning models seldom do.",
            "added": True,
        },
    )


@dataclass(frozen=True, slots=True)
class Patience:
    """Concurrency, time-out and attempts; they do not change judgments, so they are in no fingerprint.

    ``concurrency`` is the largest number of calls in flight in one worker; ``timeout`` is in seconds for one attempt
    including its reply; ``attempts`` is the largest number for one call.
    """

    concurrency: int = 16
    timeout: float = 120.0
    attempts: int = 6


@dataclass(frozen=True, slots=True)
class Call:
    """A call before it is sent.

    ``key`` is the SHA-256 of the endpoint and the request with images by digest. ``former_key`` leaves out the
    endpoint, as the keys of earlier versions do.
    """

    key: str
    stage: str
    step: int | None
    request: Mapping[str, Any]
    former_key: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: the raw body of a reply, or an error after ``retries`` further attempts."""

    call: Call
    reply: str | None = None
    model: str = ""
    finish: str = ""
    usage: Usage = field(default_factory=Usage)
    latency: int | None = None
    retries: int = 0
    error: str = ""
    hit_of: int | None = None


class CallLog(Protocol):
    """Lookup and storage of the calls of one run item. Stored calls survive a crash.

    ``sample`` distinguishes repetitions: the same request with another sample is another call.
    """

    @property
    def sample(self) -> str: ...

    async def find_reply(self, call: Call) -> tuple[int, str] | None: ...

    async def record(self, outcome: Outcome) -> Decimal | None:
        """Write a trace row; return the cost of the call in US dollars, None without a price."""
        ...


class Gate(Protocol):
    """Check before each call: the rate limits that all workers share, and the budget of the run."""

    async def admit(self, tokens: int) -> None:
        """Wait until a call of about ``tokens`` tokens may be made; raise BudgetSpent."""
        ...

    async def settle(self, estimated: int, used: int | None) -> None:
        """Correct the shared token limit by the tokens that a call really used."""
        ...

    async def hold(self, seconds: float) -> None:
        """Make every caller wait, as the endpoint asked."""
        ...


class Images(Protocol):
    """Loader of images."""

    async def load(self, image: ImageRef) -> bytes: ...
