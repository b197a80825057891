"""Stage times that somebody measured one by one, as a CSV file: read with complaints that say where and what instead."""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from epd_models.measurements import Complaint, MeasurementsError
from epd_models.parallelism import Parallelism

Part = Literal["whole", "device", "host"]

TIMES: Mapping[str, float] = {"time_ms": 1e-3, "time_s": 1.0}
"""Columns of a time, exactly one of which a file has, and the seconds of their unit."""
REQUIRED = ("stage", "model", "sku")
"""Columns that a file must have beside a time."""
OPTIONAL = (
    "cut",
    "dtype",
    "kv_cache",
    "engine",
    "batch",
    "context_tokens",
    "new_tokens",
    "cached_tokens",
    "images",
    "megapixels",
    "part",
)
"""Columns that are understood where they stand; any other column is carried along unread."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "decode": ("batch", "context_tokens"),
    "prefill": ("new_tokens",),
    "encode": ("megapixels",),
}
"""Cells that a row of each stage must fill."""

_NUMBERS = ("batch", "context_tokens", "new_tokens", "cached_tokens", "images", "megapixels")
_DEGREE = re.compile(r"(tp|pp|dp|ep)(\d+)")
_DEGREES = {"tp": "tensor", "pp": "pipeline", "dp": "attention_data", "ep": "expert"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One measured time.

    Attributes
    ----------
    line : int
        Line in the file, counted from one; the header is line 1.
    model, sku, dtype, kv_cache, engine : str
        As written; empty where the file does not say.
    cut : Parallelism
        Parallel degrees; one device where the file does not say.
    batch : float
        Sequences of an iteration, or prompts read together; 1 where a prompt is read alone.
    context, new, cached : float
        Tokens: of context per sequence, to read, and cached before them.
    images, megapixels : float
        Images that the time is for, and the size of each as the model receives it.
    part : {"whole", "device", "host"}
        What of an encode was timed.
    seconds : float
        The time.
    """

    line: int
    stage: Literal["encode", "prefill", "decode"]
    model: str
    sku: str
    dtype: str
    kv_cache: str
    engine: str
    cut: Parallelism
    batch: float
    context: float
    new: float
    cached: float
    images: float
    megapixels: float
    part: Part
    seconds: float

    @property
    def setting(self) -> tuple[object, ...]:
        """What was timed: rows with the same setting must agree."""
        return (
            *(self.stage, self.model.casefold(), self.sku.casefold(), self.dtype, self.kv_cache, self.engine, self.cut),
            *(self.batch, self.context, self.new, self.cached, self.images, self.megapixels, self.part),
        )


def is_stage_file(text: str) -> bool:
    """Whether a file's header has a column ``stage``, which files of serving runs have not."""
    return "stage" in [cell.strip() for cell in next(csv.reader(text.splitlines()[:1]), [])]


def read_stage_rows(text: str, *, file: str = "stages.csv") -> tuple[StageRow, ...]:
    """The rows of a file.

    Parameters
    ----------
    text : str
        The file's content.
    file : str
        Its name, for messages.

    Raises
    ------
    MeasurementsError
        A column is missing, given twice or without its unit, a row has more or fewer cells than the header, or a cell
        makes no sense for its stage.

    Examples
    --------
    >>> rows = read_stage_rows(
    ...     "stage,model,sku,batch,context_tokens,time_ms\\ndecode,Llama-3.1-8B,H100-SXM,16,1000,9.5\\n"
    ... )
    >>> rows[0].seconds, rows[0].cut.label
    (0.0095, 'tp1')
    """
    complaints: list[Complaint] = []
    rows: list[StageRow] = []
    reader = csv.reader(text.splitlines(), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        complaints += _header_complaints(header)
        if not complaints:
            for cells in reader:
                if cells:
                    row = _row(header, cells, reader.line_num, complaints)
                    rows += [] if row is None else [row]
    except csv.Error as error:
        complaints.append(Complaint(line=reader.line_num, message=f"not valid CSV: {error}"))
    if not complaints and not rows:
        complaints.append(Complaint(line=1, message="the file has a header and no rows"))
    if complaints:
        raise MeasurementsError(file, complaints)
    return tuple(rows)


def _header_complaints(header: list[str]) -> list[Complaint]:
    if not header:
        return [Complaint(line=1, message=f"the file is empty; expected a header with {', '.join(REQUIRED)} and time_ms")]
    known = (*REQUIRED, *OPTIONAL, *TIMES)
    found = [
        Complaint(line=1, column=name, message=f"the column stands {header.count(name)} times")
        for name in sorted({name for name in header if header.count(name) > 1})
    ]
    for name in REQUIRED:
        if name not in header:
            free = [other for other in header if other not in known]
            near = "gpu" if name == "sku" and "gpu" in free else next(iter(difflib.get_close_matches(name, free, n=1)), "")
            hint = f"is {near!r} meant for {name}?" if near else f"found {', '.join(header)}"
            found.append(Complaint(line=1, message=f"column {name} is missing", hint=hint))
    times = [name for name in TIMES if name in header]
    if not times:
        free = [other for other in header if other not in known]
        alike = [other for other in free if other.split("_")[0] in ("time", "ms", "s", "seconds", "latency", "duration")]
        hint = f"call {alike[0]!r} time_ms or time_s, by its unit" if alike else "the unit is part of the column's name"
        found.append(Complaint(line=1, message="no column of times: expected time_ms or time_s", hint=hint))
    elif len(times) > 1:
        found.append(Complaint(line=1, message="time_ms and time_s are both given", hint="keep one of them"))
    return found


def _row(header: list[str], cells: list[str], line: int, complaints: list[Complaint]) -> StageRow | None:
    before = len(complaints)

    def complain(column: str, message: str, hint: str = "") -> None:
        complaints.append(Complaint(line=line, column=column, message=message, hint=hint))

    if len(cells) != len(header):
        complain("", f"expected {len(header)} cells as in the header, found {len(cells)}")
        return None
    named = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    stage = named["stage"]
    if stage not in NEEDED:
        near = difflib.get_close_matches(stage.lower(), NEEDED, n=1)
        complain("stage", f"found {stage!r}, expected encode, prefill or decode", f"did you mean {near[0]}?" if near else "")
    for column in ("model", "sku"):
        if not named[column]:
            complain(column, "is empty")
    numbers: dict[str, float] = {}
    for column in (*_NUMBERS, *TIMES):
        cell = named.get(column, "")
        needed = column in TIMES if column not in _NUMBERS else column in NEEDED.get(stage, ())
        if not cell:
            if needed and (column in header or column in _NUMBERS):
                complain(column, f"is needed in a row of {stage}")
            continue
        try:
            value = float(cell)
        except ValueError:
            complain(column, f"expected a number, found {cell!r}")
            continue
        if not math.isfinite(value) or value < 0.0 or (value == 0.0 and column != "cached_tokens"):
            complain(column, f"expected a number above 0, found {cell}")
            continue
        numbers[column] = value
    part = named.get("part") or "whole"
    if part not in ("whole", "device", "host"):
        complain("part", f"found {part!r}, expected whole, device or host")
    elif part != "whole" and stage != "encode":
        complain("part", f"found {part!r} in a row of {stage}; only an encode has parts")
    cut = _cut(named.get("cut", ""), complain=lambda message: complain("cut", message, "as in tp4 or tp8-dp2-ep16"))
    if len(complaints) > before or cut is None:
        return None
    time = next(name for name in TIMES if name in header)
    return StageRow(
        line=line,
        stage=stage,  # type: ignore[arg-type]
        model=named["model"],
        sku=named["sku"],
        dtype=named.get("dtype", "").lower(),
        kv_cache=named.get("kv_cache", "").lower(),
        engine=named.get("engine", "").lower(),
        cut=cut,
        batch=numbers.get("batch", 1.0),
        context=numbers.get("context_tokens", 0.0),
        new=numbers.get("new_tokens", 0.0),
        cached=numbers.get("cached_tokens", 0.0),
        images=numbers.get("images", 1.0),
        megapixels=numbers.get("megapixels", 0.0),
        part=part,  # type: ignore[arg-type]
        seconds=numbers[time] * TIMES[time],
    )


def _cut(text: str, complain) -> Parallelism | None:  # type: ignore[no-untyped-def]
    degrees: dict[str, int] = {}
    for piece in text.lower().split("-") if text else []:
        match = _DEGREE.fullmatch(piece)
        if match is None or _DEGREES[match[1]] in degrees or int(match[2]) < 1:
            complain(f"found {text!r}, expected parallel degrees")
            return None
        degrees[_DEGREES[match[1]]] = int(match[2])
    return Parallelism(**degrees)
