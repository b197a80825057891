"""`epd-opt calibrate`."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from epd_models.calibrate import Calibrated, Calibration, Coefficient, Dropped, Errors, Family, Off
from epd_models.calibrate import calibrate as calibrated_by
from epd_models.calibrate.card import card_documents, card_key, card_text
from epd_models.calibrate.identify import ENOUGH
from epd_opt.cli.measured import problem, read_rows, warn_of_contradictions
from epd_opt.cli.terminal import echo_json
from epd_opt.errors import InvalidInput, UsageError

SCHEMA = "epd-opt/calibration/v1"
_FIGURES = re.compile(r"\d[\d.e+-]*")


@click.command()
@click.argument("measurements", type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="CARD", help="Write the coefficients card to this YAML file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report and the cards as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No report on standard error.")
def calibrate(measurements: str, output: str | None, as_json: bool, quiet: bool) -> int:
    """Fit the models to your own measurements.

    MEASUREMENTS is a CSV file, or - for standard input, as `epd-opt predict` reads it. Starting from the shipped card of
    each accelerator architecture and engine, the achieved shares and overheads are fitted to the rows; those of which the
    rows do not tell enough stay as shipped and are listed. The card goes to standard output, or to CARD (of several
    architectures, to CARD-ARCHITECTURE each), the report to standard error. Apply a card with `coefficients: CARD` on a
    device entry.
    """
    rows, name = read_rows(measurements)
    calibration = calibrated_by(rows)
    if not calibration.calibrated:
        raise InvalidInput(
            [
                *(problem(name, one.lines[0], f"{_family(one.family)}: {one.reason}") for one in calibration.refused),
                *(problem(name, line, text) for line, text in _first_of_each(calibration)),
            ]
        )
    today = datetime.date.today().isoformat()
    file = name if name == "<stdin>" else Path(name).name
    cards = card_documents(calibration, file=file, date=today)
    paths = {} if output is None else _written(Path(output), cards)
    if as_json:
        echo_json(json.dumps(_document(calibration, len(rows), cards), indent=2, ensure_ascii=False, allow_nan=False))
    elif output is None:
        click.echo("---\n".join(card_text(card) for card in cards.values()), nl=False)
    if not quiet:
        warn_of_contradictions(name, rows)
        click.echo(_report(calibration, len(rows)), nl=False, err=True)
        for path, card in paths.items():
            click.echo(f"wrote {path}: apply it as coefficients: {path} on devices of architecture {card['from']}", err=True)
    return 0


def _written(path: Path, cards: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The files and what is in them; one is called as the user said, several carry their architecture."""
    files = {
        str(path if len(cards) == 1 else path.with_name(f"{path.stem}-{architecture}{path.suffix or '.yaml'}")): card
        for architecture, card in cards.items()
    }
    for file, card in files.items():
        try:
            Path(file).write_text(card_text(card), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"-o {file}: cannot write: {error.strerror}") from None
    return files


def _first_of_each(calibration: Calibration) -> list[tuple[int, str]]:
    """One line for each reason why rows were dropped, reasons that differ in figures alone together, with how many there
    are."""
    alike: dict[str, list[Dropped]] = {}
    for one in calibration.dropped:
        alike.setdefault(_FIGURES.sub("#", one.reason), []).append(one)
    found = []
    for members in alike.values():
        others = "" if len({one.reason for one in members}) == 1 else "; likewise the others"
        found.append((members[0].line, f"{_rows(len(members))} not used: {members[0].reason}{others}"))
    return found


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def _family(family: Family) -> str:
    return f"{family.architecture} with {family.engine}"


def _document(calibration: Calibration, rows: int, cards: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "rows": {
            "read": rows,
            "used": sum(len(one.lines) for one in calibration.calibrated),
            "dropped": [asdict(one) for one in calibration.dropped],
        },
        "calibrated": [
            {
                **asdict(one.family),
                "devices": one.devices,
                "models": one.models,
                "lines": one.lines,
                "groups": one.groups,
                "before": asdict(one.before),
                "held_out": asdict(one.after),
                "coefficients": {card_key(c.name)[0]: _coefficient(c) for c in one.coefficients},
                "not_identified": [card_key(c.name)[0] for c in one.coefficients if not c.identified],
            }
            for one in calibration.calibrated
        ],
        "refused": [{**asdict(one.family), "lines": one.lines, "reason": one.reason} for one in calibration.refused],
        "cards": dict(cards),
    }


def _coefficient(c: Coefficient) -> dict[str, float | bool | None]:
    factor = card_key(c.name)[1]
    return {
        "shipped": float(f"{c.shipped * factor:.6g}"),
        "fitted": float(f"{c.fitted * factor:.6g}"),
        "identified": c.identified,
        "information": round(c.information, 3),
        "information_jointly": round(c.jointly, 3),
        "at_bound": c.at_bound,
        "spread": None if c.spread is None else round(c.spread, 4),
    }


def _report(calibration: Calibration, rows: int) -> str:
    used = sum(len(one.lines) for one in calibration.calibrated)
    lines = [f"{used} of {_rows(rows)} used"]
    lines += [f"line {line}: {text}" for line, text in _first_of_each(calibration)]
    lines += [f"{_family(one.family)}: nothing fitted: {one.reason}" for one in calibration.refused]
    for one in calibration.calibrated:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(one: Calibrated) -> list[str]:
    about = f"{', '.join(one.models)} on {', '.join(one.devices)}"
    lines = [
        f"{_family(one.family)}: {_rows(len(one.lines))} in {one.groups} groups, {about}",
        f"  errors as shipped        {_errors(one.before)}",
        f"  on groups left out       {_errors(one.after)}",
    ]
    if _worse(one):
        lines.append("  no better on groups left out than the shipped card: these rows give no reason to replace it")
    for c in one.coefficients:
        if c.identified:
            key, factor = card_key(c.name)
            alone = "" if c.jointly >= ENOUGH else ", only told with those below kept"
            spread = "  at its bound" if c.at_bound else f"  +- {100.0 * (c.spread or 0.0):.0f} %"
            lines.append(f"  {key:26} {c.shipped * factor:9.3g} -> {c.fitted * factor:<9.3g}{spread}{alone}")
    kept = [card_key(c.name)[0] for c in one.coefficients if not c.identified]
    if kept:
        lines.append(f"  not identified by these rows, kept as shipped: {', '.join(kept)}")
    return lines


def _worse(one: Calibrated) -> bool:
    pairs = [(one.before.itl, one.after.itl), (one.before.ttft, one.after.ttft)]
    before, after = next((pair for pair in pairs if pair[0] is not None), (None, None))
    return before is not None and after is not None and after.median >= before.median


def _errors(errors: Errors) -> str:
    def figures(off: Off | None) -> str:
        return "-" if off is None else f"{100.0 * off.median:.1f} %, {100.0 * off.mean:.1f} % ({off.points})"

    return f"interval median, mean {figures(errors.itl)}; first token {figures(errors.ttft)}"
