"""`epd-opt predict`."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from epd_models.measurements import Measurement, duplicates
from epd_models.plausible import remarked
from epd_models.serving import Prediction
from epd_models.serving import predict as predict_rows
from epd_opt.cli.measured import problem, read_rows, warn_of_contradictions
from epd_opt.cli.terminal import echo_json
from epd_opt.errors import InvalidInput, UsageError

_ADDED = ("predicted_ttft_ms", "predicted_itl_ms", "reason")


@click.command()
@click.argument("measurements", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Write the rows with their predictions to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print rows and error summary as JSON instead of CSV.")
@click.option("-q", "--quiet", is_flag=True, help="No error summary and no warnings on standard error.")
def predict(measurements: str, output: str | None, as_json: bool, quiet: bool) -> int:
    """Predict what serving benchmarks measure, with the planner's own models.

    MEASUREMENTS is a CSV file, or - for standard input, with the columns model, dtype, gpu, engine, n_gpu, tp, isl, osl,
    concurrency, ttft_ms, itl_ms (both may be empty) and, where they matter, pp, attention_dp, moe_tp, moe_ep, mode.
    The rows come back on standard output with predicted_ttft_ms, predicted_itl_ms and the reason where there is none; an
    error summary per model, GPU and engine goes to standard error.
    """
    rows, name = read_rows(measurements)
    predictions = [remarked(prediction) for prediction in predict_rows(rows)]
    if all(p.times is None for p in predictions):
        raise InvalidInput(problem(name, p.row.line, p.reason) for p in predictions)
    groups = _groups(predictions)
    if as_json:
        document = {
            "rows": [{**row.cells, **_cells(prediction)} for row, prediction in zip(rows, predictions, strict=True)],
            "summary": groups,
        }
        echo_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    elif output is None:
        click.echo(_table(rows, predictions), nl=False)
    if output is not None:
        _write(output, _table(rows, predictions))
    if not quiet:
        for line, earlier in duplicates(rows):
            click.echo(f"warning: {name}:{line}: says the same as line {earlier}; it counts twice", err=True)
        warn_of_contradictions(name, rows)
        click.echo(_summary(groups, predictions), nl=False, err=True)
    return 0


def _cells(prediction: Prediction) -> dict[str, float | str | None]:
    times = prediction.times
    return {
        "predicted_ttft_ms": None if times is None else float(f"{times.ttft_s * 1e3:.6g}"),
        "predicted_itl_ms": None if times is None else float(f"{times.itl_s * 1e3:.6g}"),
        "reason": prediction.reason,
    }


def _table(rows: Sequence[Measurement], predictions: Sequence[Prediction]) -> str:
    columns = [column for column in rows[0].cells if column not in _ADDED]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*columns, *_ADDED])
    for row, prediction in zip(rows, predictions, strict=True):
        added = ["" if value is None else value for value in _cells(prediction).values()]
        writer.writerow([*(row.text(column) for column in columns), *added])
    return buffer.getvalue()


def _groups(predictions: Sequence[Prediction]) -> list[dict[str, str | int | float | None]]:
    """Errors per (model, gpu, engine, mode), then overall; rows without measurements count as predicted only."""
    keys = list(dict.fromkeys(_key(p.row) for p in predictions))
    groups = [(key, [p for p in predictions if _key(p.row) == key]) for key in keys]
    if len(groups) > 1:
        groups += _overall(predictions)
    return [
        {
            "model": key[0],
            "gpu": key[1],
            "engine": key[2],
            "mode": key[3],
            "rows": len(members),
            "predicted": sum(p.times is not None for p in members),
            **_errors("itl", [(p.row.itl_s, p.times.itl_s) for p in members if p.times is not None]),
            **_errors("ttft", [(p.row.ttft_s, p.times.ttft_s) for p in members if p.times is not None]),
        }
        for key, members in groups
    ]


def _overall(predictions: Sequence[Prediction]) -> Iterator[tuple[tuple[str, str, str, str], list[Prediction]]]:
    """All rows; where they differ in it, the modes by themselves, and what the file marks as good with both times."""
    modes = sorted({_key(p.row)[3] for p in predictions})
    if len(modes) > 1:
        for mode in modes:
            yield ("all", "", "", mode), [p for p in predictions if _key(p.row)[3] == mode]
    if any(p.row.text("quality") not in ("", "ok") for p in predictions):
        for mode in modes:
            good = [p for p in predictions if _key(p.row)[3] == mode and p.row.text("quality") in ("", "ok")]
            timed = [p for p in good if p.row.ttft_s is not None and p.row.itl_s is not None]
            yield ("all marked ok, both times", "", "", mode), timed
    yield ("all", "", "", ""), list(predictions)


def _key(row: Measurement) -> tuple[str, str, str, str]:
    mode = "disagg" if row.text("mode") == "disagg" else "agg"
    return row.text("model"), row.text("gpu"), row.text("engine"), mode


def _errors(name: str, pairs: Sequence[tuple[float | None, float]]) -> dict[str, float | None]:
    off = [100.0 * (predicted / measured - 1.0) for measured, predicted in pairs if measured is not None]
    if not off:
        return {f"{name}_median_error_percent": None, f"{name}_mean_error_percent": None, f"{name}_bias_percent": None}
    absolute = [abs(value) for value in off]
    return {
        f"{name}_median_error_percent": round(statistics.median(absolute), 2),
        f"{name}_mean_error_percent": round(statistics.fmean(absolute), 2),
        f"{name}_bias_percent": round(statistics.median(off), 2),
    }


def _summary(groups: Sequence[dict[str, str | int | float | None]], predictions: Sequence[Prediction]) -> str:
    def figure(value: str | int | float | None) -> str:
        return f"{value:.1f}" if isinstance(value, float) else "-"

    counted = ("model", "gpu", "engine", "mode", "rows", "predicted")
    heads: tuple[str, ...] = (*counted, "ITL median %", "mean %", "TTFT median %", "mean %")
    lines = [heads]
    for group in groups:
        shown = [figure(group[f"{time}_{kind}_error_percent"]) for time in ("itl", "ttft") for kind in ("median", "mean")]
        lines.append((*(str(group[key]) for key in counted), *shown))
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    text = "absolute errors of predictions against measurements\n"
    for line in lines:
        cells = [cell.ljust(w) if i < 4 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True))]
        text += "  ".join(cells).rstrip() + "\n"
    reasons: dict[str, int] = {}
    for prediction in predictions:
        if prediction.times is None:
            reasons[prediction.reason] = reasons.get(prediction.reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1]):
        text += f"{count} row{'s' if count > 1 else ''} not predicted: {reason}\n"
    return text


def _write(output: str, text: str) -> None:
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"-o {output}: cannot write: {error.strerror}") from None
