"""Images of the demo sites, drawn as flat SVG shapes: small when recorded, and free of third-party rights."""

from __future__ import annotations

_INK = "#22313f"


def _svg(width: int, height: int, body: str, fit: str = "slice") -> str:
    """Return an SVG element; ``fit`` as in SVG: meet shows all of it, slice fills the frame."""
    return f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" preserveAspectRatio="xMidYMid {fit}">{body}</svg>'


def _laptop(colour: str) -> str:
    return (
        f'<rect x="46" y="22" width="108" height="72" rx="6" fill="{_INK}"/>'
        f'<rect x="52" y="28" width="96" height="60" fill="{colour}"/>'
        '<path d="M52 88 L52 66 L92 40 L148 88 Z" fill="#ffffff" opacity=".28"/>'
        '<path d="M34 98 H166 L158 108 H42 Z" fill="#95a5a6"/>'
        '<rect x="88" y="98" width="24" height="4" fill="#7f8c8d"/>'
    )


def _headphones(colour: str) -> str:
    return (
        f'<path d="M62 84 V66 a38 38 0 0 1 76 0 V84" fill="none" stroke="{_INK}" stroke-width="8"/>'
        f'<rect x="50" y="68" width="24" height="38" rx="10" fill="{colour}"/>'
        f'<rect x="126" y="68" width="24" height="38" rx="10" fill="{colour}"/>'
    )


def _tablet(colour: str) -> str:
    return (
        f'<rect x="66" y="14" width="68" height="98" rx="7" fill="{_INK}"/>'
        f'<rect x="71" y="20" width="58" height="84" fill="{colour}"/>'
        '<circle cx="112" cy="42" r="10" fill="#ffffff" opacity=".5"/>'
        '<path d="M71 104 L92 70 L106 88 L116 76 L129 104 Z" fill="#ffffff" opacity=".35"/>'
    )


def _monitor(colour: str) -> str:
    return (
        f'<rect x="34" y="18" width="132" height="76" rx="4" fill="{_INK}"/>'
        f'<rect x="39" y="23" width="122" height="66" fill="{colour}"/>'
        '<path d="M39 89 L84 44 L116 76 L134 58 L161 89 Z" fill="#ffffff" opacity=".3"/>'
        '<rect x="93" y="94" width="14" height="10" fill="#95a5a6"/>'
        '<rect x="74" y="104" width="52" height="6" rx="3" fill="#95a5a6"/>'
    )


def _keyboard(colour: str) -> str:
    keys = "".join(
        f'<rect x="{36 + 13 * column}" y="{50 + 13 * row}" width="10" height="10" rx="2" fill="#ffffff"/>'
        for row in range(3)
        for column in range(10)
    )
    return (
        f'<rect x="28" y="42" width="144" height="58" rx="6" fill="{_INK}"/>{keys}'
        f'<rect x="62" y="89" width="76" height="7" rx="2" fill="{colour}"/>'
    )


def _speaker(colour: str) -> str:
    return (
        f'<rect x="68" y="14" width="64" height="98" rx="14" fill="{colour}"/>'
        f'<circle cx="100" cy="44" r="13" fill="{_INK}"/><circle cx="100" cy="83" r="21" fill="{_INK}"/>'
        '<circle cx="100" cy="83" r="9" fill="#95a5a6"/><circle cx="100" cy="44" r="5" fill="#95a5a6"/>'
    )


_PRODUCT_SHAPES = {
    "laptops": _laptop,
    "headphones": _headphones,
    "tablets": _tablet,
    "monitors": _monitor,
    "keyboards": _keyboard,
    "speakers": _speaker,
}

_SCENES = {
    "harbour": (
        '<rect width="400" height="240" fill="#bfe0ea"/><circle cx="318" cy="58" r="26" fill="#fff3d6"/>'
        '<rect x="40" y="70" width="150" height="112" fill="#b5533c"/>'
        '<path d="M32 72 L115 28 L198 72 Z" fill="#6e2f22"/>'
        + "".join(
            f'<rect x="{58 + 44 * column}" y="{90 + 42 * row}" width="22" height="28" fill="#fde9c8"/>'
            for row in range(2)
            for column in range(3)
        )
        + '<rect y="182" width="400" height="58" fill="#2f7f93"/>'
        '<path d="M236 176 H350 L332 202 H254 Z" fill="#22313f"/>'
        '<path d="M292 80 V172 H344 Z" fill="#ffffff"/><path d="M286 98 V172 H250 Z" fill="#f4c95d"/>'
    ),
    "forest": (
        '<rect width="400" height="240" fill="#d9ecd0"/>'
        '<rect y="186" width="400" height="54" fill="#7fa36b"/>'
        + "".join(
            f'<path d="M{x} 190 L{x + 34} {y} L{x + 68} 190 Z" fill="{fill}"/>'
            for x, y, fill in (
                (4, 60, "#3f6f4a"),
                (60, 36, "#2f5a3b"),
                (268, 44, "#2f5a3b"),
                (326, 70, "#3f6f4a"),
            )
        )
        + '<rect x="150" y="122" width="108" height="72" fill="#a86a3d"/>'
        '<path d="M138 126 L204 74 L270 126 Z" fill="#5f3a20"/>'
        '<rect x="192" y="148" width="26" height="46" fill="#5f3a20"/>'
        '<rect x="162" y="142" width="20" height="20" fill="#fde9c8"/>'
    ),
    "town": (
        '<rect width="400" height="240" fill="#f6dcc4"/>'
        + "".join(
            f'<rect x="{x}" y="{y}" width="74" height="{240 - y}" fill="{fill}"/>'
            f'<path d="M{x - 4} {y + 2} L{x + 37} {y - 34} L{x + 78} {y + 2} Z" fill="#5a4a42"/>'
            f'<rect x="{x + 14}" y="{y + 22}" width="18" height="26" fill="#fff3d6"/>'
            f'<rect x="{x + 44}" y="{y + 22}" width="18" height="26" fill="#fff3d6"/>'
            for x, y, fill in (
                (22, 96, "#d98f6b"),
                (112, 74, "#e3b04b"),
                (202, 104, "#8fae8b"),
                (292, 82, "#b56a5a"),
            )
        )
        + '<rect y="212" width="400" height="28" fill="#8d7b6c"/>'
    ),
    "mountain": (
        '<rect width="400" height="240" fill="#cfe3f2"/>'
        '<path d="M-20 240 L110 60 L230 240 Z" fill="#7d93a6"/>'
        '<path d="M110 60 L82 100 L104 94 L118 108 L138 102 Z" fill="#ffffff"/>'
        '<path d="M120 240 L270 34 L430 240 Z" fill="#5f778c"/>'
        '<path d="M270 34 L238 78 L262 72 L278 88 L304 78 Z" fill="#ffffff"/>'
        '<rect y="206" width="400" height="34" fill="#8fae6b"/>'
        '<rect x="176" y="176" width="58" height="36" fill="#8a5a34"/>'
        '<path d="M168 178 L205 150 L242 178 Z" fill="#4b2e19"/>'
    ),
}


_VALLEY = (
    '<rect width="1120" height="230" fill="#cfe3f2"/><circle cx="936" cy="58" r="30" fill="#fff3d6"/>'
    '<path d="M430 230 L590 70 L760 230 Z" fill="#9db3c4"/>'
    '<path d="M590 70 L556 104 L584 98 L604 112 L622 100 Z" fill="#ffffff"/>'
    '<path d="M600 230 L800 34 L1010 230 Z" fill="#7d93a6"/>'
    '<path d="M800 34 L762 71 L792 66 L810 84 L838 70 Z" fill="#ffffff"/>'
    '<path d="M0 230 V168 Q280 120 560 176 T1120 164 V230 Z" fill="#8fae6b"/>'
    '<g transform="translate(0 18)"><rect x="900" y="132" width="92" height="54" fill="#b5533c"/>'
    '<path d="M888 134 L946 92 L1004 134 Z" fill="#6e2f22"/>'
    '<rect x="914" y="146" width="20" height="20" fill="#fde9c8"/>'
    '<rect x="956" y="146" width="20" height="40" fill="#6e2f22"/>'
    '<path d="M1016 186 L1042 110 L1068 186 Z" fill="#3f6f4a"/>'
    '<path d="M1052 190 L1080 122 L1108 190 Z" fill="#2f5a3b"/>'
    '<path d="M838 186 L860 124 L882 186 Z" fill="#2f5a3b"/></g>'
)


def product_picture(category: str, colour: str) -> str:
    """Return an SVG element of 200 x 126 units."""
    return _svg(200, 126, _PRODUCT_SHAPES[category](colour), "meet")


def scene(name: str) -> str:
    """Return an SVG element of 400 x 240 units."""
    return _svg(400, 240, _SCENES[name])


def valley() -> str:
    """Return the wide image of the booking site's first page, 1120 x 230 units."""
    return _svg(1120, 230, _VALLEY)
