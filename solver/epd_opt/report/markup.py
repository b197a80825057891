"""HTML and SVG from elements. Every text is escaped; what is markup already has a type of its own."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

from epd_opt.wording import printable

_VOID = ("br", "meta")
_FRAGMENT = "/?:@!$&'()*+,;=~"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
Attribute: TypeAlias = str | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element; underscores in attribute names stand for hyphens, one at the end for none.

    >>> element("p", "a < b", element("b", "!"), class_="x", data_path="/a")
    '<p class="x" data-path="/a">a &lt; b<b>!</b></p>'
    """
    stated = "".join(_attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    opening = f"<{tag}{stated}>"
    return Markup(opening if tag in _VOID else f"{opening}{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Children one after the other, texts escaped."""
    return Markup("".join(_text(child) for child in children))


def number(text: str, value: float | None, *path: str | int, of: str = "plan") -> Markup:
    """A figure with the value and the place (a JSON pointer) that it has in its document; a text alone where it is null.

    >>> number("$14", 14.25, "cost", "a/b")
    '<data class="number" value="14.25" data-path="plan#/cost/a~1b">$14</data>'
    """
    if value is None:
        return joined(text)
    return element("data", text, class_="number", value=json.dumps(value), data_path=pointer(of, *path))


def pointer(document: str, *path: str | int) -> str:
    """A place in a document, as a JSON pointer in a fragment (RFC 6901, section 6)."""
    steps = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return f"{document}#{quote(steps, safe=_FRAGMENT, errors='surrogatepass')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of the page with a heading; ``short`` is its name in the list of contents."""

    anchor: str
    title: str
    short: str
    body: Markup

    def markup(self) -> Markup:
        """The section element, named by its heading."""
        heading = element("h2", self.title, id=f"{self.anchor}-title")
        return element("section", heading, self.body, id=self.anchor, aria_labelledby=f"{self.anchor}-title")


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Child]]) -> Markup:
    """A table whose rows become cards on narrow screens; a leading ``>`` puts a column's cells to the right.

    Roles are stated because browsers forget those of tables that are laid out in another way.
    """
    titles = [column.removeprefix(">") for column in columns]
    sides = ["figure" if column.startswith(">") else None for column in columns]
    head = [
        element("th", title, scope="col", role="columnheader", class_=side)
        for title, side in zip(titles, sides, strict=True)
    ]
    body = []
    for first, *others in rows:
        cells = [element("th", first, scope="row", role="rowheader", data_label=titles[0])]
        cells += [
            element("td", element("div", cell), role="cell", class_=side, data_label=title)
            for cell, title, side in zip(others, titles[1:], sides[1:], strict=True)
        ]
        body.append(element("tr", cells, role="row"))
    return element(
        "table",
        element("caption", caption, class_="unseen"),
        element("thead", element("tr", head, role="row"), role="rowgroup"),
        element("tbody", body, role="rowgroup"),
        role="table",
    )


def badge(text: str, kind: str = "") -> Markup:
    """A word in a box; ``kind`` is good, warn, bad or empty."""
    return element("span", text, class_=f"badge {kind}".rstrip())


def trust(confidence: str) -> Markup:
    """How far to trust a figure; estimates stand out."""
    return badge(confidence, "warn" if confidence in ("estimate", "recalled") else "")


def letter(text: str) -> Markup:
    """The letter of a pool."""
    return element("span", text, class_="letter")


def paragraph(*children: Child, class_: str | None = None) -> Markup:
    """A paragraph."""
    return element("p", *children, class_=class_)


def listed(items: Iterable[Child], class_: str | None = None) -> Markup:
    """An unordered list."""
    return element("ul", [element("li", item) for item in items], class_=class_)


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Terms and what they are."""
    return element(
        "dl", [element("div", element("dt", term), element("dd", value)) for term, value in pairs], class_="facts"
    )


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(printable(text))}"'


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(printable(child), quote=False)
    return "".join(_text(one) for one in child)
