"""Bars: what a fleet's cost is made of, and how much of something is taken."""

from __future__ import annotations

from collections.abc import Sequence

from epd_opt.report.markup import Markup, element
from epd_opt.wording import share

_ROOM_FOR_LETTER = 0.05
"""Shorter pieces stay blank, the list below the bar names them all."""


def meter(taken: float, kind: str = "") -> Markup:
    """A bar filled as far as the share that is taken; what is beyond 1 stays in its kind. The figure stands beside it."""
    width = f"{100 * min(max(taken, 0.0), 1.0):.1f}%"
    return element(
        "svg",
        element("rect", class_="track", width="100%", height="100%", rx="3"),
        element("rect", class_=f"filled {kind}".rstrip(), width=width, height="100%", rx="3"),
        class_="meter",
        aria_hidden="true",
        focusable="false",
    )


def interval(low: float, high: float, wanted: float, *, start: float, kind: str) -> Markup:
    """A confidence interval of shares and the share that is wanted, on an axis from ``start`` to 1."""

    def at(value: float) -> float:
        return 100 * (max(value, start) - start) / (1.0 - start)

    return element(
        "svg",
        element("rect", class_="track", width="100%", height="100%", rx="3"),
        element(
            "rect", class_=f"filled {kind}", x=f"{at(low):.1f}%", width=f"{max(at(high) - at(low), 1.0):.1f}%", height="100%"
        ),
        element("rect", class_="mark", x=f"{min(at(wanted), 99.0):.1f}%", width="2", height="100%"),
        class_="meter",
        aria_hidden="true",
        focusable="false",
    )


def cost_bar(pieces: Sequence[tuple[str, str, float]]) -> Markup:
    """Letter, name and US dollars per hour of every piece, side by side in one bar as long as the page is wide."""
    total = sum(usd for _, _, usd in pieces)
    said = ", ".join(f"{name} {share(usd / total)}" for _, name, usd in pieces) if total else "nothing costs anything"
    parts, start = [], 0.0
    for index, (letter, name, usd) in enumerate(pieces):
        part = usd / total if total else 0.0
        bar = element(
            "rect",
            element("title", f"{name}: {share(part)}"),
            class_=f"piece tint{index % 4}",
            x=f"{100 * start:.2f}%",
            width=f"{100 * part:.2f}%",
            height="100%",
        )
        middle = f"{100 * (start + part / 2):.2f}%"
        word = element("text", letter, x=middle, y="50%", class_=f"on-tint{index % 4}") if part >= _ROOM_FOR_LETTER else None
        parts += [bar, word]
        start += part
    title = element("title", f"Cost per hour by pool: {said}", id="cost-bar-title")
    return element("svg", title, parts, role="img", aria_labelledby="cost-bar-title", class_="cost-bar")
