"""Coefficients fitted to serving runs that somebody measured.

One set for each accelerator architecture and engine, starting from the shipped card and drawn towards it. A coefficient of
which the runs do not tell enough keeps its shipped value (:mod:`epd_models.calibrate.identify`). How well the result
foretells runs is measured on whole groups that its fit has not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epd_models.calibrate.fitting import PRIORS, fit
from epd_models.calibrate.identify import Told, at_other_loads, told_by
from epd_models.calibrate.reduced import NAMES, Bools, Floats, Reduced, reduce_runs, times
from epd_models.calibrate.sample import Dropped, Family, Usable, sort_rows
from epd_models.catalog.coefficient_card import card_coefficients
from epd_models.measurements import Measurement

__all__ = ["Calibrated", "Calibration", "Coefficient", "Dropped", "Errors", "Family", "Off", "Refused", "calibrate"]

LEAST_ROWS, LEAST_GROUPS = 8, 3
"""Rows and groups below which nothing is fitted: groups must be left out and still leave something to fit."""
FOLDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """Absolute errors of predicted times over measured ones, as shares: 0.07 is 7 %."""

    median: float
    mean: float
    p90: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Errors of intervals and of first tokens; None where nothing was measured."""

    itl: Off | None
    ttft: Off | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One coefficient before and after.

    Attributes
    ----------
    shipped, fitted : float
        SI units; equal where the runs do not identify it.
    identified : bool
        Whether the runs tell enough of it.
    information, jointly : float
        How much they tell, from 0 (nothing) to 1, with those of which they tell less kept as shipped, and with all others
        free; :data:`epd_models.calibrate.identify.ENOUGH` of the former is enough.
    spread : float or None
        Standard deviation of the fitted value over itself, from fits that leave groups out (jackknife); None where not
        identified.
    at_bound : bool
        Whether the fitted value is the least or the most that is thought possible: the rows would go further.
    """

    name: str
    shipped: float
    fitted: float
    identified: bool
    information: float
    jointly: float
    spread: float | None
    at_bound: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """The coefficients of one architecture and engine.

    Attributes
    ----------
    before, after : Errors
        Of the shipped coefficients, and of fitted ones on groups that the fit has not seen.
    """

    family: Family
    lines: tuple[int, ...]
    groups: int
    devices: tuple[str, ...]
    models: tuple[str, ...]
    coefficients: tuple[Coefficient, ...]
    before: Errors
    after: Errors

    @property
    def fitted(self) -> dict[str, float]:
        """Values of the coefficients that the rows identify, SI units."""
        return {c.name: c.fitted for c in self.coefficients if c.identified}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An architecture and engine with too little to fit."""

    family: Family
    lines: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a file of measurements gave; rows are lines of the file."""

    calibrated: tuple[Calibrated, ...]
    refused: tuple[Refused, ...]
    dropped: tuple[Dropped, ...]


def calibrate(rows: Iterable[Measurement]) -> Calibration:
    """Fit the coefficients of every architecture and engine that the rows tell enough of."""
    usable, dropped = sort_rows(rows)
    families: dict[Family, list[Usable]] = {}
    for one in usable:
        families.setdefault(one.family, []).append(one)
    calibrated, refused = [], []
    for family, members in sorted(families.items(), key=lambda item: (item[0].architecture, item[0].engine)):
        reason = _too_little(members)
        if reason:
            refused.append(Refused(family=family, lines=_lines(members), reason=reason))
        else:
            calibrated.append(_calibrated(family, members))
    return Calibration(calibrated=tuple(calibrated), refused=tuple(refused), dropped=tuple(dropped))


def _too_little(members: Sequence[Usable]) -> str:
    groups = len({one.group for one in members})
    if len(members) >= LEAST_ROWS and groups >= LEAST_GROUPS:
        return ""
    return (
        f"{len(members)} usable rows in {groups} groups of the same model, GPU, engine, isl and osl; "
        f"at least {LEAST_ROWS} rows in {LEAST_GROUPS} groups are needed"
    )


def _calibrated(family: Family, members: Sequence[Usable]) -> Calibrated:
    shipped = shipped_values(family)
    pairs = [(one.run, one.row) for one in members]
    runs, elsewhere = reduce_runs(pairs), at_other_loads(pairs)
    values, told = _fitted(runs, shipped, elsewhere)
    names = tuple(name for name in NAMES if told[name].enough)
    folds = _folds([one.group for one in members])
    spreads = _spreads(runs, shipped, names, folds)
    least = {name: min(PRIORS[name].least, shipped[name]) * (1.0 + 1e-6) for name in NAMES}
    most = {name: max(PRIORS[name].most, shipped[name]) * (1.0 - 1e-6) for name in NAMES}
    return Calibrated(
        family=family,
        lines=_lines(members),
        groups=len({one.group for one in members}),
        devices=tuple(sorted({one.run.decode.worker.device.sku for one in members})),
        models=tuple(sorted({one.run.decode.worker.model.name for one in members})),
        coefficients=tuple(
            Coefficient(
                name=name,
                shipped=shipped[name],
                fitted=values[name],
                identified=name in names,
                information=told[name].finally_,
                jointly=told[name].jointly,
                spread=spreads.get(name),
                at_bound=name in names and not least[name] < values[name] < most[name],
            )
            for name in NAMES
        ),
        before=errors(times(shipped, runs), runs),
        after=errors(_held_out(runs, shipped, folds, elsewhere), runs),
    )


def shipped_values(family: Family) -> dict[str, float]:
    """The catalogue's coefficients of an architecture under an engine, SI units."""
    cards = card_coefficients(family.architecture)
    coefficients = cards.get(family.engine) or cards["default"]
    return {name: getattr(coefficients, name) for name in NAMES}


def _fitted(runs: Reduced, shipped: Mapping[str, float], elsewhere: Reduced) -> tuple[dict[str, float], dict[str, Told]]:
    """Coefficients with those that the runs do not identify at their shipped values, and how much runs tell of each."""
    usable = tuple(name for name in NAMES if shipped[name] > 0.0)
    told = dict.fromkeys(NAMES, Told(jointly=0.0, finally_=0.0))
    told |= told_by(fit(runs, centre=shipped, names=usable), runs, usable, elsewhere=elsewhere)
    return fit(runs, centre=shipped, names=tuple(name for name in usable if told[name].enough)), told


def _held_out(runs: Reduced, shipped: Mapping[str, float], folds: Floats, elsewhere: Reduced) -> tuple[Floats, Floats]:
    interval, first = np.empty(len(runs)), np.empty(len(runs))
    for k in np.unique(folds):
        test = folds == k
        values, _ = _fitted(runs.at(~test), shipped, elsewhere)
        interval[test], first[test] = times(values, runs.at(test))
    return interval, first


def _spreads(runs: Reduced, shipped: Mapping[str, float], names: Sequence[str], folds: Floats) -> dict[str, float]:
    """Jackknife standard deviations of logarithms, over fits that leave one fold out."""
    left_out = [fit(runs.at(folds != k), centre=shipped, names=names) for k in np.unique(folds)]
    logs = np.log([[values[name] for name in names] for values in left_out])
    count = len(left_out)
    return dict(zip(names, (logs.std(axis=0) * math.sqrt(count - 1)).tolist(), strict=True))


def _folds(groups: Sequence[tuple[str, ...]]) -> Floats:
    """A fold for each row, whole groups together; folds differ by at most one group."""
    names = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(names)) % min(FOLDS, len(names))
    fold = dict(zip(names, order, strict=True))
    return np.array([float(fold[group]) for group in groups])


def errors(found: tuple[Floats, Floats], runs: Reduced) -> Errors:
    """Of predicted intervals and first tokens."""
    return Errors(itl=_off(found[0], runs.itl), ttft=_off(found[1], runs.ttft))


def _off(predicted: Floats, measured: Floats) -> Off | None:
    known: Bools = np.isfinite(measured)
    off = np.abs(predicted[known] / measured[known] - 1.0)
    if not off.size:
        return None
    return Off(median=float(np.median(off)), mean=float(off.mean()), p90=float(np.percentile(off, 90)), points=off.size)


def _lines(members: Sequence[Usable]) -> tuple[int, ...]:
    return tuple(one.row.line for one in members)
