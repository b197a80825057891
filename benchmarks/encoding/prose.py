"""Sentences that cite cells of the kept tables: `{TABLE | key=value; key=value | column | format}` stands for a figure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from encoding.table import number

SENTENCES = Path(__file__).with_name("sentences.md")
Rows = Sequence[Mapping[str, str]]
Tables = Mapping[str, Rows]


def only(rows: Rows, **key: str) -> Mapping[str, str]:
    """The only row with these values."""
    found = [r for r in rows if all(r[name] == value for name, value in key.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows have {key}")
    return found[0]


def cited(text: str, tables: Tables) -> str:
    """The text with every citation replaced by its figure.

    Formats are Python's, `.0f` where none is given; `abs` drops the sign. The column `count` counts rows.

    >>> cited("{a | x=1 | y}, {a | x=1 | y | abs}, {a | x=1 | y | +.1f}, {a | z=u | count}",
    ...       {"a": [{"x": "1", "y": "-2.5", "z": "u"}, {"x": "2", "y": "3", "z": "u"}]})
    '-2, 2, -2.5, 2'
    """

    def figure(found: re.Match[str]) -> str:
        table, where, column, *shape = (part.strip() for part in found[1].split("|"))
        key = dict(part.strip().split("=", 1) for part in where.split(";"))
        if column == "count":
            return str(sum(all(r[name] == value for name, value in key.items()) for r in tables[table]))
        value = number(only(tables[table], **key)[column])
        how = shape[0] if shape else ".0f"
        return f"{abs(value):.0f}" if how == "abs" else f"{value:{how}}"

    return re.sub(r"\{([^{}]*\|[^{}]*)\}", figure, text)


def section(name: str, tables: Tables) -> str:
    """A section of the sentences, with its figures; items of lists are wrapped, rows of tables are not."""
    parts = re.split(r"^# (.+)\n", SENTENCES.read_text(encoding="utf-8"), flags=re.M)
    text = cited(dict(zip(parts[1::2], parts[2::2], strict=True))[name].strip(), tables)
    return "\n".join(_wrapped(line) for line in re.sub(r"\n +", " ", text).splitlines())


def _wrapped(line: str) -> str:
    if not line.startswith("- "):
        return line
    return textwrap.fill(line.replace(" %", "\0%"), 120, subsequent_indent="  ", break_on_hyphens=False).replace("\0", " ")
