"""Tables as all views draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epd_opt.document import Route
from epd_opt.wording import milliseconds, printable, share, significant

_RULED = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_NAME = "cyan"


def ruled(*columns: str) -> Table:
    """A table of these columns; a leading ``>`` puts a column's cells to the right."""
    table = Table(box=_RULED, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        title = column.removeprefix(">")
        width = max(len(line) for line in title.split("\n"))
        table.add_column(title, justify="left" if title == column else "right", overflow="fold", min_width=width or 1)
    return table


def spaced(table: Table) -> Padding:
    """A table with a line above it."""
    return Padding(table, (1, 0, 0, 0), expand=False)


def name_text(text: str) -> Text:
    """A name as all tables show it."""
    return Text(printable(text), style=_NAME)


def against(value: float | None, slo: dict[str, Any], which: str) -> Text:
    """A predicted time, its target and the percentile both are meant at."""
    target = slo.get(f"{which}_ms")
    if target is None:
        return Text(milliseconds(value))
    percentile = slo.get(f"{which}_percentile") or slo.get("percentile", 95)
    met = value is None or value <= target * (1 + 1e-6)
    return Text.assemble(
        (milliseconds(value), "" if met else "bold red"), (f" of {significant(target)} p{percentile:g}", "")
    )


def ways_text(routes: Sequence[Route], rate_per_s: float, letters: Mapping[str, str], *, between: str = "\n") -> str:
    """The ways of a class through the pools, by their letters."""
    if not routes:
        return "-"
    ways = sorted(routes, key=lambda way: -way.rate_per_s)
    return between.join(
        " → ".join(letters[pool] for pool in way.pools) + (f" {share(way.rate_per_s / rate_per_s)}" if len(ways) > 1 else "")
        for way in ways
    )
