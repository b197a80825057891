"""Thresholds that a plan is held against: what pipelines gate on."""

from __future__ import annotations

import click

from epd_opt.cli.plans import load_plan
from epd_opt.comparison.compare import difference
from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput, Problem, UsageError

BREACHED = 7
"""Exit code of a breached threshold."""

_ROUNDING = 1e-9


class _Percentage(click.ParamType[float]):
    name = "P%"

    def convert(self, value: object, param: click.Parameter | None, context: click.Context | None) -> float:
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            number = -1.0
        if not text.endswith("%") or not 0.0 <= number < float("inf"):
            self.fail(f"found {value}, expected per cent as 5%", param, context)
        return number / 100.0


PERCENTAGE = _Percentage()
"""A percentage with its sign, as a share."""


class Gate:
    """How a plan compares with a baseline, and whether it costs too much.

    Parameters
    ----------
    file : str
        Name of the baseline.
    most : float or None
        Share by which a request may cost more; None reports only.
    """

    def __init__(self, baseline: PlanDocument, file: str, most: float | None) -> None:
        self.baseline, self.file, self.most = baseline, file, most

    def judged(self, plan: PlanDocument) -> tuple[str, bool]:
        """What to say, and whether the threshold is breached; an increase of exactly the threshold is none."""
        found = difference(self.baseline, plan)
        if found is None or found.usd_per_request is None:
            return f"no cost per request to compare with {self.file}", False
        assert self.baseline.cost is not None
        before = self.baseline.cost.usd_per_request or 0.0
        rise = f"{found.per_request_share:+.2%}" if found.per_request_share is not None else "from nothing"
        text = f"a request costs {before + found.usd_per_request:.6g} USD, {rise} against {before:.6g} in {self.file}"
        if self.most is None:
            return text, False
        breached = found.usd_per_request > before * (self.most + _ROUNDING)
        return f"{text}, {'above' if breached else 'within'} the limit of +{self.most * 100:.6g}%", breached


def baseline_gate(file: str | None, most: float | None, instance: str) -> Gate | None:
    """The gate that the options ask for, read before any work is done.

    Raises
    ------
    UsageError
        A limit without a baseline, or standard input twice.
    InvalidInput
        The baseline is not a plan, or has no cost per request.
    """
    if file is None:
        if most is not None:
            raise UsageError("--max-increase: expected --baseline PLAN, the plan that the cost is compared with")
        return None
    if file == "-" and instance == "-":
        raise UsageError("--baseline -: standard input is the instance")
    baseline = load_plan(file).document
    name = "<stdin>" if file == "-" else file
    if baseline.cost is None or baseline.cost.usd_per_request is None:
        message = f"the plan is {baseline.status}" if baseline.cost is None else "nothing is requested in the plan"
        raise InvalidInput([Problem(file=name, message=f"{message}: it has no cost per request to compare with")])
    return Gate(baseline, name, most)
