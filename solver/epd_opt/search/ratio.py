"""The least cost per request over a range of multiples of the demand, by Dinkelbach's method.

Cost per request is a ratio: hourly cost over requests per hour, both linear in a model that may leave a part of the demand
unserved. With a trial value q, the least of "cost + q for each request left" is below q times all requests exactly if some
plan costs less than q per request. Its solution is such a plan, and its cost per request the next trial; the values converge
in a few steps, faster than linearly. Each step also bounds the ratio of all plans from below.

References
----------
Dinkelbach, "On nonlinear fractional programming", Management Science 13 (1967).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from epd_opt import document as doc
from epd_opt.backends import EXACTNESS, Outcome, OutOfTime, relaxed
from epd_opt.bound import largest_ties
from epd_opt.errors import InvalidInput, Problem
from epd_opt.formulation import Formulation, build
from epd_opt.formulation.objective import ratio_objective, requests_per_hour
from epd_opt.infeasible import unservable
from epd_opt.search.fixed import cheapest
from epd_opt.search.task import Found, Means, NoPlan, Task, rounded_down

_MOST_STEPS = 40
"""Steps after which the search ends with what it has; a few are usual."""
_COARSE = 0.01
"""Gap of the first step, whose trial value is no plan's."""
_CONVERGED = 1e-9
"""Relative change of the ratio that counts as none."""


def cheapest_multiple(task: Task, low: float, high: float) -> Found | NoPlan:
    """The fleet and the multiple of the stated demand, from ``low`` to ``high``, at which a request costs least.

    Raises
    ------
    InvalidInput
        No requests are counted on average, so that none has a cost.
    OutOfTime
        The clock ended before there was a plan.
    SolverFailed
        See :meth:`epd_opt.search.task.Task.solve`.
    """
    if not sum(demand.mean_rate for demand in task.resolved.demands) > 0.0:
        message = "all mean rates are 0, so that no request has a cost"
        raise InvalidInput([Problem(path="objective.rate_multiple", message=message, hint="give mean_rate_per_s")])
    if low == high:
        found = cheapest(task, low)
        return replace(found, rate_multiple=_range(low, low, high, [low])) if isinstance(found, Found) else found
    hints = [low, high]
    offered = task.offering_at(hints)
    why = unservable(task.resolved, offered)
    if why is not None:
        return NoPlan(why=why)
    problem = task.pruned(offered, high)
    formulation = build(replace(problem.at(high), least_served=low / high))
    best = Dinkelbach(means=task.means, formulation=formulation, least=low / high)
    outcome = best.run()
    if best.values is None:
        infeasible = outcome.termination == "infeasible"
        return NoPlan(why=task.limiting(problem.at(low)) if infeasible else None, outcome=outcome)
    multiple = min(high, max(low, rounded_down(high * best.served)))
    return Found(
        multiple=multiple,
        offered=offered,
        formulation=build(problem.at(multiple)),
        outcome=dataclasses.replace(outcome, values=best.values, objective=None, bound=None),
        proved=best.proved,
        rate_multiple=_range(multiple, low, high, hints, bound=best.bound_usd_per_request(), iterations=best.steps),
    )


def _range(
    multiple: float, low: float, high: float, hints: list[float], *, bound: float = 0.0, iterations: int = 1
) -> doc.RateMultiple:
    return doc.RateMultiple(
        multiple=multiple, low=low, high=high, bound_usd_per_request=bound, iterations=iterations, points_for=hints
    )


@dataclass(kw_only=True)
class Dinkelbach:
    """The search over one model whose demand may be left unserved down to the share ``least``.

    Ratios are on the scale of the objective: cost and ties over the share of the demand that is served.

    Attributes
    ----------
    values, ratio, served : optional
        The best plan so far, and the share of the demand that it serves.
    lower : float
        No plan has a lower ratio.
    """

    means: Means
    formulation: Formulation
    least: float
    values: Mapping[str, float] | None = None
    ratio: float = math.inf
    served: float = 1.0
    lower: float = 0.0
    steps: int = 0

    @property
    def proved(self) -> bool:
        """Whether no plan can be better by more than the gap."""
        gap = self.means.settings.gap + EXACTNESS / self.least
        return self.ratio - self.lower <= gap * self.ratio

    def bound_usd_per_request(self) -> float:
        """No plan has a lower cost per request, ties left out."""
        cost = self.ratio / self.formulation.scale.factor
        ties = largest_ties(self.formulation, cost) / self.least
        return max(0.0, self.lower - ties) * self._usd_per_request

    def run(self) -> Outcome:
        """Search to the wanted gap, or as long as the clock allows; the outcome of the last step."""
        trial = self.lower = self._relaxed()
        settings = dataclasses.replace(self.means.settings, gap=max(_COARSE, self.means.settings.gap * self.least))
        while True:
            self.steps += 1
            self._aim(trial)
            outcome = self.means.solve(self.formulation, dataclasses.replace(settings, start=self.values))
            if outcome.bound is not None:
                left = outcome.bound - trial
                self.lower = max(self.lower, trial + left / (self.least if left < 0.0 else 1.0))
            if outcome.values is not None:
                self._take(outcome.values, trial)
            ended = outcome.termination != "optimal" or self.proved or self.steps == _MOST_STEPS
            if ended or abs(trial - self.ratio) <= _CONVERGED * self.ratio:
                return outcome
            settings = dataclasses.replace(settings, gap=self.means.settings.gap * self.least)
            trial = self.ratio

    @property
    def _usd_per_request(self) -> float:
        """Dollars per request for each unit of a ratio."""
        return 1.0 / (self.formulation.scale.factor * requests_per_hour(self.formulation.sets))

    def _aim(self, trial: float) -> None:
        f = self.formulation
        f.model.setObjective(ratio_objective(f.sets, f.variables, f.scale, trial * self._usd_per_request))

    def _relaxed(self) -> float:
        """The least ratio where whole numbers are left out."""
        trial = 0.0
        for _ in range(_MOST_STEPS):
            self._aim(trial)
            outcome = relaxed(self.formulation.model, self.means.clock)
            if outcome.values is None or outcome.objective is None:
                return 0.0
            served = self._served(outcome.values)
            ratio = (outcome.objective - trial * (1.0 - served)) / served
            if trial > 0.0 and ratio >= trial * (1.0 - _CONVERGED):
                return trial * (1.0 - EXACTNESS)
            trial = ratio
        return 0.0

    def _served(self, values: Mapping[str, float]) -> float:
        assert self.formulation.variables.unserved is not None
        return 1.0 - values[self.formulation.variables.unserved.name]

    def _take(self, values: Mapping[str, float], trial: float) -> None:
        """Keep a solution if it is better, its fleet serving as much as is best for it."""
        with contextlib.suppress(OutOfTime):
            values = relaxed(self.formulation.model, self.means.clock, whole=values).values or values
        served = self._served(values)
        objective = sum(c * values[variable.name] for variable, c in self.formulation.model.objective.items())
        ratio = (objective - trial * (1.0 - served)) / served
        if ratio < self.ratio:
            self.values, self.ratio, self.served = values, ratio, served
