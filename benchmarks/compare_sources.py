"""How far each source of times is off on public serving runs.

    python benchmarks/compare_sources.py RUNS.csv

RUNS.csv has the columns of `epd-opt predict`; rows count where `quality` is ok (or there is no such column), `mode` is
aggregated, both times are given and no drafting is suspected. The profile of a worker's every second run predicts the
others; the model and, where the extra is installed, the kernel tables predict the same runs. Coefficients of the model were
fitted on runs like these, so its own errors are those of a fit; docs/accuracy.md has those of held-out runs.
"""

from __future__ import annotations

import csv
import io
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from epd_models.measurements import Measurement, MeasurementsError, read_measurements
from epd_models.serving import Run, Unpredictable, closed_loop, run_of
from epd_models.source import Source, Subject
from epd_models.sources import profile, silicon
from epd_models.sources.kernel_tables import installed

Row = tuple[Measurement, Run]
Errors = list[tuple[float, float]]


def load(path: Path) -> dict[tuple[str, ...], list[Row]]:
    """Rows by model, SKU, engine, weights and parallel degrees."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in read_measurements(path.read_text(encoding="utf-8"), file=path.name):
        good = row.text("quality") in ("", "ok") and row.text("mode") in ("", "agg") and "R1" not in row.text("model")
        if not good or row.ttft_s is None or row.itl_s is None:
            continue
        try:
            run, _ = run_of(row)
        except Unpredictable:
            continue
        worker = run.decode.worker
        if worker.engine.speculative is None:
            key = (worker.model.name, worker.device.sku, worker.engine.name, worker.precision.weights, worker.cut.label)
            groups.setdefault(key, []).append((row, run))
    return groups


def errors(rows: Sequence[Row], source: Source | None) -> Errors:
    """Relative errors of the interval and of the time to first token."""
    found = []
    for row, run in rows:
        times = closed_loop(replace(run, decode=replace(run.decode, worker=replace(run.decode.worker, source=source))))
        assert row.itl_s is not None
        assert row.ttft_s is not None
        found.append((times.itl_s / row.itl_s - 1.0, times.ttft_s / row.ttft_s - 1.0))
    return found


def text_of(rows: Sequence[Row]) -> str:
    """The rows as a file."""
    buffer = io.StringIO()
    columns = list(rows[0][0].cells)
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.text(column) for column in columns] for row, _ in rows)
    return buffer.getvalue()


def profiled(rows: Sequence[Row], subject: Subject) -> Source | None:
    """The profile of rows; None where they contradict each other."""
    try:
        return profile.build({"file": "half", "csv": text_of(rows), "strict": False}, subject, embedded={})
    except MeasurementsError:
        return None


def line(name: str, all_errors: Errors) -> str:
    """Medians, means and 90th percentiles of absolute errors."""
    if not all_errors:
        return f"{name:58} {0:5}"
    cells = []
    for which in (0, 1):
        off = sorted(abs(pair[which]) for pair in all_errors)
        cells += [statistics.median(off), statistics.fmean(off), off[int(0.9 * (len(off) - 1))]]
    return f"{name:58} {len(all_errors):5} " + " ".join(f"{100 * cell:8.1f}" for cell in cells)


def main(path: str, say: Callable[[str], None] = print) -> None:
    """Print the tables."""
    package = installed()
    halves: dict[str, Errors] = {"model": [], "profile": []}
    whole: dict[str, Errors] = {"model": [], "silicon": []}
    by_kind: dict[str, Errors] = {}
    contradicting = 0
    say(f"{'':58} {'runs':>5} " + " ".join(f"{head:>8}" for head in ("itl med", "mean", "p90", "ttft med", "mean", "p90")))
    for key, rows in sorted(load(Path(path)).items()):
        worker = rows[0][1].decode.worker
        subject = Subject(
            entry="x", model=worker.model, device=worker.device, precision=worker.precision, engine=worker.engine
        )
        ordered = sorted(rows, key=lambda row: (row[1].prompt_tokens, row[1].output_tokens, row[1].concurrency, row[0].line))
        taught, asked = ordered[::2], ordered[1::2]
        if len(taught) >= 4:
            measured = profiled(taught, subject)
            contradicting += measured is None
            if measured is not None:
                halves["model"] += errors(asked, None)
                halves["profile"] += errors(asked, measured)
        if package is not None:
            tables = silicon.of_package({"fallback": "analytic"}, subject, package, embedded={})
            if tables.language(worker).decode is not None:
                found = errors(rows, tables)
                whole["silicon"] += found
                whole["model"] += errors(rows, None)
                by_kind.setdefault(f"kernel tables: {key[0]} {' '.join(key[1:4])}", []).extend(found)
    for name, found in sorted(by_kind.items()):
        say(line(name, found))
    say(line("every second run: model", halves["model"]))
    say(line("every second run: profile of the others", halves["profile"]))
    say(f"workers left out because their runs contradict each other: {contradicting}")
    if package is not None:
        say(line("runs that kernel tables cover: model", whole["model"]))
        say(line(f"runs that kernel tables cover: {package.version}", whole["silicon"]))


if __name__ == "__main__":
    main(sys.argv[1])
