"""Break-evens: the value of one input at which the best plan begins or ends to use a SKU, a placement or a stage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from epd_opt._version import __version__
from epd_opt.backends import backend
from epd_opt.errors import InvalidInput, UsageError
from epd_opt.fields import shown
from epd_opt.held import Held
from epd_opt.instance import Instance, instance_sha256
from epd_opt.paths import get, locate, parse_path, set_value
from epd_opt.reading import complaining_in_place, read
from epd_opt.resolve import resolve
from epd_opt.scaling import is_number, scalable
from epd_opt.sensitivity.crossing import Crossing, Search
from epd_opt.sensitivity.document import BreakEvenDocument, FleetPool, Side, Stated
from epd_opt.sensitivity.given_rates import at_given_rates
from epd_opt.sensitivity.price_path import price_path
from epd_opt.sensitivity.shift import dimension
from epd_opt.sensitivity.trial import Trials, Tried
from epd_opt.sensitivity.use import Use, use_of
from epd_opt.wording import money

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TOLERANCE = 1e-3
"""Relative width to which bisection brings the two sides together."""
_FACTORS = (10.0, 5.0, 2.0, 1.5, 1.1)
"""Without a range: from a tenth to ten times what the instance states, or nearer where it takes no such value."""


class BreakEven(Held[BreakEvenDocument]):
    """A break-even; shows itself in a terminal (``print``) and in a notebook.

    Attributes
    ----------
    document : BreakEvenDocument
        All of it, as in the JSON document.
    """

    def to_frame(self) -> pd.DataFrame:
        """The plans on the two sides as a table, one row per pool; needs pandas (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        rows = [
            {"side": name, "usd_per_hour": side.usd_per_hour, **pool.model_dump(exclude={"serves"})}
            for name, side in (("below", self.document.below), ("above", self.document.above))
            if side is not None
            for pool in side.pools
        ]
        return pandas().DataFrame(rows)

    def plot(self) -> Figure:
        """Costs of the two plans over the value, and where they cross; needs matplotlib
        (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.sensitivity.moves_figure import break_even_figure

        return break_even_figure(self.document)

    def __str__(self) -> str:
        from epd_opt.sensitivity.moves_view import break_even_text

        return break_even_text(self.document)

    def __repr__(self) -> str:
        return f"<Break-even of {self.document.instance!r}: {self.document.text}>"

    def _repr_html_(self) -> str:
        from epd_opt.sensitivity.moves_view import break_even_html

        return break_even_html(self.document)


@complaining_in_place()
def break_even(
    instance: Instance | Mapping[str, Any] | str | Path,
    path: str,
    *,
    placement: str | None = None,
    sku: str | None = None,
    stage: str | None = None,
    low: float | None = None,
    high: float | None = None,
    tolerance: float = TOLERANCE,
    gap: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> BreakEven:
    """The value of an input at which the best plan begins or ends to use a SKU, a placement or a stage.

    Where the value moves prices alone, in proportion (prices of devices, electricity, PUE, a host's share), every fleet
    costs a straight line in it. A plan with the use and one without are improved, each solve where their lines cross, until
    no plan is cheaper there: the break-even is then exact. As the best cost with the use and that without it are concave in
    the value, it is the only one between the values of the two plans. Elsewhere bisection brings together a value at which
    the best plan has the use and one at which it has not.

    Parameters
    ----------
    instance : Instance, mapping or path
        What is planned.
    path : str
        The input that moves, as ``--set`` takes it; or the name of a device, for its price. A path of several places moves
        them by a common factor.
    placement, sku, stage : str, optional
        What is to pay: a placement, a device entry or SKU, a stage, or several of them together. For the price of a device,
        that device where no other is named.
    low, high : float, optional
        Range of the values; by default, for prices, from 0 to where a single lot costs more than doing without, else a tenth
        to ten times what is stated.
    tolerance : float
        Relative width to which bisection brings the sides together; whole numbers to neighbours.
    gap : float
        Relative gap of the solves, in place of the instance's. The bounds of the result hold whatever it is.
    progress : callable, optional
        Called with one line per step.

    Raises
    ------
    InvalidInput
        The instance makes no sense, the path names nothing, an end of the range is no value of it, or the objective leaves
        the rates open.
    UsageError
        Nothing or nothing known is named that is to pay, or there is no range.
    """
    given = instance if isinstance(instance, Instance) else read(instance)
    backend(given.solver.name)
    at_given_rates(given, "a break-even")
    path, device = _path(given, path)
    use = use_of(given, placement=placement, device=sku or device, stage=stage)
    asked = _Asked.of(given, path, use, gap, progress or (lambda _: None))
    low, high = asked.range(low, high)
    search = Search(trials=asked.trials, low=low, high=high, stated=asked.stated, width=tolerance, whole=asked.whole)
    return BreakEven(asked.document(search.run(), low, high))


def _path(instance: Instance, text: str) -> tuple[str, str | None]:
    """The path that is meant, and the device whose price it is, if it is one."""
    entries = [entry for entry in instance.devices if entry.name == text]
    entries = entries or [entry for entry in instance.devices if entry.sku == text]
    if len(entries) > 1:
        names = ", ".join(entry.name for entry in entries)
        raise UsageError(f"break-even: {text!r} is offered as {names}: name one of them")
    if entries:
        (entry,) = entries
        stated = next(one for one in instance.document()["devices"] if one["name"] == entry.name)
        path = price_path(stated)
        if path is None:
            raise UsageError(f"break-even: the instance states no price of {text} that could move")
        return path, entry.name
    parts = parse_path(text)
    if len(parts) >= 4 and parts[0] == "devices" and parts[2] == "price":
        known = {entry.name for entry in instance.devices}
        return text, parts[1] if isinstance(parts[1], str) and parts[1] in known else None
    return text, None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One question: an input, what is to pay, and the plans tried for it."""

    instance: Instance
    path: str
    stated: float | None
    scaled: bool
    use: Use
    gap: float
    trials: Trials

    @classmethod
    def of(cls, instance: Instance, path: str, use: Use, gap: float, say: Callable[[str], None]) -> _Asked:
        """The question, with what the instance states at the path."""
        document = set_value(instance.document(), "solver.gap", gap)
        places = locate(document, path, existing=False)
        try:
            values = [value for _, value in get(document, path)]
        except InvalidInput:
            values = []
        several = len(places) > 1 or any(not is_number(value) for value in values)
        if several and not all(scalable(value) for value in values):
            raise UsageError(f"break-even: {path} is {shown(values[0])}, expected a number or what a factor applies to")
        stated = 1.0 if several else float(values[0]) if values else _usual(instance, path)
        probe = [stated] if stated is not None else [1.0]
        moved = dimension(path, probe, document, scaled=several)
        return cls(
            instance=instance,
            path=path,
            stated=stated,
            scaled=several,
            use=use,
            gap=gap,
            trials=Trials(document, moved, use, say),
        )

    @property
    def whole(self) -> bool:
        """Whether the input takes whole numbers alone."""
        return self.trials.moved.whole and not self.scaled

    def range(self, low: float | None, high: float | None) -> tuple[float, float]:
        """Where to look."""
        if (low is None or high is None) and not self.stated:
            raise UsageError(f"break-even: {self.path} states no value above 0: give --low and --high")
        stated = self.stated or 0.0
        priced = (low is None or high is None) and self._takes(2.0 * stated) and self.trials.straight(stated, 2.0 * stated)
        if low is None:
            low = 0.0 if priced and self._takes(0.0) else self._far(stated, [1.0 / factor for factor in _FACTORS], priced)
        if high is None:
            high = (self._priceless(stated) if priced else None) or self._far(stated, _FACTORS, priced)
            high = max(high, 2.0 * low)
        if not low < high:
            raise UsageError(f"break-even: found a range from {low:g} to {high:g}, expected the lower end first")
        for end in (low, high):
            self.trials.resolved(end)
        return low, high

    def _far(self, stated: float, factors: Sequence[float], priced: bool) -> float:
        """The value farthest from what is stated that the instance takes and, where more than prices move, has a plan at."""
        for factor in factors:
            value = self._rounded(stated * factor)
            if self._takes(value) and (priced or self.trials.best(value).document is not None):
                return value
        return stated

    def _rounded(self, value: float) -> float:
        return float(round(value)) if self.whole else value

    def _takes(self, value: float) -> bool:
        try:
            self.trials.resolved(value)
        except InvalidInput:
            return False
        return True

    def _priceless(self, stated: float) -> float | None:
        """A price of a device at which a single lot costs more than doing without; None where the price is no device's,
        where other pools use the device too, or where nothing serves without."""
        here, twice = self.trials.resolved(stated), self.trials.resolved(2.0 * stated)
        moved = [(one, two) for one, two in zip(here.offers, twice.offers, strict=True) if one != two]
        if len(moved) != 1 or not self.trials.all_meant(moved[0][0].name, stated):
            return None
        (one, two), without = moved[0], self.trials.without(stated)
        slope = (two.usd_per_hour - one.usd_per_hour) / stated * one.lot
        if without.document is None or slope <= 0.0:
            return None
        high = 1.05 * without.usd_per_hour / slope
        return max(float(f"{high:.2g}"), 2.0 * stated) if high > 0.0 else None

    def document(self, found: Crossing, low: float, high: float) -> BreakEvenDocument:
        """The answer."""
        stated = self._stated()
        below, above = self._side(found, found.below), self._side(found, found.above)
        used: Literal["below", "above"] | None = None
        if found.outcome == "found" and below is not None:
            used = "below" if below.uses else "above"
        return BreakEvenDocument(
            instance=self.instance.name,
            path=self.path,
            scaled=self.scaled,
            of=str(self.use),
            placement=self.use.placement,
            sku=self.use.device,
            stage=self.use.stage,
            low=low,
            high=high,
            outcome=found.outcome,
            at=found.at,
            bounds=None if found.bounds is None else list(found.bounds),
            used=used,
            method=found.method,
            below=below,
            above=above,
            stated=stated,
            gap=self.gap,
            solves=self.trials.solves,
            text=self._words(found, used, low, high, stated),
            notes=list(found.notes),
            instance_sha256=instance_sha256(self.instance),
            epd_opt=__version__,
        )

    def _side(self, found: Crossing, tried: Tried) -> Side | None:
        if tried.document is None:
            return None
        cost, slope = tried.usd_per_hour, None
        if found.method == "lines" and found.at is not None:
            low, high = found.below, found.above
            cost = tried.at(self.trials.resolved(found.at))
            slope = (tried.at(high.resolved) - tried.at(low.resolved)) / (high.value - low.value)
        return Side(
            uses=tried.uses,
            solved_at=tried.value,
            usd_per_hour=cost,
            usd_per_hour_per_unit=slope,
            pools=[
                FleetPool(
                    name=pool.name,
                    placement=pool.placement,
                    sku=pool.sku,
                    device=pool.device,
                    replicas=pool.replicas + pool.spare_replicas,
                    devices=pool.devices,
                    serves=pool.serves,
                )
                for pool in tried.document.pools
            ],
        )

    def _stated(self) -> Stated | None:
        if self.stated is None:
            return None
        best = self.trials.best(self.stated)
        without = self.trials.without(self.stated) if best.uses else best
        having = best if best.uses or best.document is None else self.trials.having(self.stated)
        return Stated(
            value=self.stated,
            used=None if best.document is None else best.uses,
            usd_per_hour=_finite(best.usd_per_hour),
            without_usd_per_hour=_finite(without.usd_per_hour),
            with_usd_per_hour=_finite(having.usd_per_hour),
        )

    def _words(
        self, found: Crossing, used: Literal["below", "above"] | None, low: float, high: float, stated: Stated | None
    ) -> str:
        between = f"from {self.amount(low)} to {self.amount(high)}"
        if found.outcome == "found":
            assert found.at is not None
            text = f"{self.use} pays {used} {self.amount(found.at)}"
            return f"{text}; {worth}" if (worth := self._worth(stated)) else text
        if found.outcome == "always":
            needed = all(self.trials.without(one.value).infeasible for one in (found.below, found.above))
            why = "without it nothing serves the instance" if needed else self._worth(stated)
            return f"{self.use} is in the best plan {between}; {why}" if why else f"{self.use} is in the best plan {between}"
        if found.outcome == "never":
            text = f"{self.use} does not pay {between}"
            having = self.trials.having(found.below.value if self.stated is None else self.stated)
            if having.document is None:
                why = "; ".join(reason.text for reason in having.reasons) or "no plan that has it serves the instance"
                return f"{text}: {why}"
            return f"{text}; {worth}" if (worth := self._worth(stated)) else text
        at = " and at ".join(self.amount(one.value) for one in (found.below, found.above) if one.document is None)
        if found.outcome == "no_plan":
            return f"nothing serves the instance at {at}: look between values at which it has plans (--low, --high)"
        return f"the time passed before there was a plan at {at}: allow more (solver.time_limit_s)"

    def _worth(self, stated: Stated | None) -> str:
        """What the use is worth as the instance stands, in words; empty where that is not known."""
        if stated is None or stated.usd_per_hour is None:
            return ""
        other = stated.without_usd_per_hour if stated.used else stated.with_usd_per_hour
        if other is None:
            return ""
        more = other - stated.usd_per_hour
        at = f"at the stated {self.amount(stated.value)}"
        if more <= 1e-6 * other:
            return f"{at} plans with and without it cost the same"
        return f"{at} it saves {money(more)}/h" if stated.used else f"{at} it would cost {money(more)}/h more"

    def amount(self, value: float) -> str:
        """A value with its unit."""
        text = f"{value:,.5g}" if abs(value) < 1e5 else f"{value:,.0f}"
        if self.scaled:
            return f"x{text}"
        leaf = str(parse_path(self.path)[-1])
        forms = {"usd_per_hour": "${}/h", "purchase_usd": "${}", "electricity_usd_per_kwh": "${}/kWh"}
        return forms.get(leaf, f"{leaf} {{}}").format(text)


def _usual(instance: Instance, path: str) -> float | None:
    """What holds where the instance leaves terms of ownership out."""
    parts = parse_path(path)
    if len(parts) != 2 or parts[0] != "cost":
        return None
    found = getattr(resolve(instance).rules, str(parts[1]), None)
    return float(found) if isinstance(found, int | float) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
