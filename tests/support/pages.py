"""HTML pages read back: their elements, texts, and the figures with the places that they name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

_VOID = {"meta", "br"}


@dataclass(kw_only=True)
class Element:
    """An element with its attributes and everything inside."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text inside."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str | None = None) -> list[Element]:
        """Elements inside, in order."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                found += [child] if tag in (None, child.tag) else []
                found += child.all(tag)
        return found

    def by_id(self, name: str) -> Element:
        """The one element with this id."""
        (found,) = [one for one in self.all() if one.attributes.get("id") == name]
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element(tag="", attributes={})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"repeated attribute in <{tag}>"
        element = Element(tag=tag, attributes=dict(attrs))
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(text: str) -> Element:
    """The page as a tree; every element that is not void must be closed, in order."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], "elements are left open"
    return reader.root


def figures(page: Element) -> list[tuple[str, str, float, str]]:
    """Document, pointer, value and text of every figure that names its place."""
    found = []
    for one in page.all():
        place = one.attributes.get("data-path")
        if place is not None:
            document, _, pointer = place.partition("#")
            value = one.attributes["value"] if one.tag == "data" else one.attributes["data-value"]
            found.append((document, pointer, json.loads(value or ""), one.text))
    return found


def at(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer in a fragment (RFC 6901, section 6)."""
    for part in unquote(pointer, errors="surrogatepass").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document
