"""The search for mends: every limit's knobs, each turned as far as it must be, and several together where none is
enough alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from epd_opt.backends import Backend, Clock, OutOfTime, Settings
from epd_opt.document import Infeasibility, Mend, PlanDocument, Reason
from epd_opt.infeasible import progress, relaxations
from epd_opt.instance import CostOverRange
from epd_opt.mending.elastic import raised, together
from epd_opt.mending.knobs import Knob, Level, all_ways, knobs, leaving_out, not_required, prices, target
from epd_opt.mending.ladder import nearest, on_rung, rung_above
from epd_opt.mending.trial import Attempt, Change, Changes, Trials
from epd_opt.offering import Offering, offering
from epd_opt.resolve import Resolved


def mended(
    resolved: Resolved,
    why: Infeasibility | None,
    attempt: Attempt,
    clock: Clock,
    solver: Backend,
    *,
    thorough: bool,
    cards: Any = None,
    say: Callable[[str], None] = lambda _: None,
) -> Infeasibility:
    """The reasons with mends: changes after which the instance has a plan, cheapest plan first.

    Every mend was solved. ``together`` holds several changes that are enough only together; it is filled where no limit of
    the fleet is enough alone, or nothing is.

    Parameters
    ----------
    why : Infeasibility
        Reasons, and limits of the fleet with the value that each would have to take.
    solver : Backend
        For the search over several limits at once.
    thorough : bool
        Whether to look for every mend, or for one per reason.
    """
    assert why is not None
    longer = "" if thorough else "; `epd-opt explain INSTANCE` looks for longer"
    no_time = f"there was no time to look for further mends{longer}"
    try:
        offered = offering(resolved, each=clock.check)
    except OutOfTime:
        return why.model_copy(update={"mends": [], "note": no_time})
    search = _Search(Trials(resolved, offered, attempt, clock, cards), why, solver, thorough, say)
    try:
        search.run()
        given_up = f"some changes were given up before it was clear whether they help{longer}"
        note = given_up if search.trials.undecided else ""
    except OutOfTime:
        note = no_time
    if search.together:
        why = _naming(why, search.together, offered)
    singles = sorted(search.mends.values(), key=lambda mend: (mend.usd_per_hour or 0.0, mend.change))
    return why.model_copy(update={"mends": singles, "together": search.together, "note": note})


def _naming(why: Infeasibility, raised_together: Sequence[Mend], offered: Offering) -> Infeasibility:
    """Reasons that name the limits of the fleet that give way together, in place of one that lists all limits."""
    if any(r.request_class is not None or r.wanted is not None for r in why.reasons):
        return why
    known = {relaxed.path: relaxed for relaxed in relaxations(offered.problem)}
    labels = {mend.change: known[mend.change].label if mend.change in known else mend.change for mend in raised_together}
    reasons = []
    for mend in raised_together:
        others = " and ".join(label for path, label in labels.items() if path != mend.change)
        if mend.change in known:
            one, to = known[mend.change], float(mend.to)
            text = f"{one.label} is {one.wanted:g}; raising it alone is not enough; together with {others}, {to:g} is"
            reasons.append(Reason(limit=one.limit, wanted=one.wanted, best_reachable=to, text=text))
        elif mend.change == not_required().path:
            names = " and ".join(name for name, _ in offered.problem.limits.required)
            text = f"limits.require asks for {names}; without that, there is a plan only with a change of {others} as well"
            reasons.append(Reason(limit="require", text=text))
        else:
            text = f"{mend.change} is missing; with a price, there is a plan only with a change of {others} as well"
            reasons.append(Reason(limit="no_price", text=text))
    return why.model_copy(update={"reasons": reasons})


class _Search:
    def __init__(
        self, trials: Trials, why: Infeasibility, solver: Backend, thorough: bool, say: Callable[[str], None]
    ) -> None:
        self.trials, self.why, self.solver, self.thorough, self.say = trials, why, solver, thorough, say
        self.mends: dict[tuple[str, str], Mend] = {}
        self.together: list[Mend] = []
        self.ways: dict[str, Changes] = {}

    def run(self) -> None:
        """Look for mends of every reason, then for several together."""
        self._limits()
        of_fleet = not self._stranded()
        required = any(reason.limit == "require" for reason in self.why.reasons)
        if of_fleet and not self.mends and not required:
            self._several(openings=False)
        if self.thorough or not (self.mends or self.together):
            for reason in self._reasons():
                self._reason(reason)
        if not self.mends and not self.together:
            self._several(openings=True)
        if not self.mends and not self.together:
            left = [leaving_out(name) for name in self._stranded()]
            kept = [self._keep([change]) for change in left]
            if len(left) > 1 and not any(kept):
                self._keep(left)

    def _stranded(self) -> list[str]:
        """Classes that no pools serve."""
        return sorted({r.request_class for r in self.why.reasons if r.request_class is not None})

    def _reasons(self) -> Iterator[Reason]:
        """The reasons, those about limits of the fleet once for all of them."""
        fleet = False
        for reason in self.why.reasons:
            if reason.request_class is not None or not fleet:
                yield reason
            fleet |= reason.request_class is None

    def _limits(self) -> None:
        """Limits of the fleet that are enough alone, at the values that were found, rounded up."""
        known = {relaxed.path: relaxed for relaxed in relaxations(self.trials.offered.problem)}
        for proposed in self.why.mends:
            self.say(f"trying {proposed.change}")
            change = raised(known[proposed.change], float(proposed.to))
            if not self._keep([change]):
                self._keep([Change(path=change.path, to=proposed.to, text=change.text)])

    def _reason(self, reason: Reason) -> None:
        name = reason.request_class
        for knob in knobs(reason, self.trials.resolved, self.trials.offered):
            works = self._serves if name is None else partial(self._has_way, name)
            found = self._turned(knob, works)
            if found is None:
                continue
            if self._keep([found]):
                self._comfortable(knob, found)
            elif name is not None:
                self.ways.setdefault(name, (found,))
                if len(self.why.reasons) == 1 and isinstance(knob, Level):
                    self._farther(knob)
            if not self.thorough:
                return

    def _serves(self, change: Change) -> bool:
        return self.trials.serves([change])

    def _has_way(self, name: str, change: Change) -> bool:
        return self.trials.has_way([change], name)

    def _farther(self, knob: Level) -> None:
        """Turn on a knob that gives a class a way until the limits of the fleet leave room for it."""
        far = (knob.now if knob.guess is None else knob.guess) * 10.0
        found = self._turned(replace(knob, loosest=far if knob.up else knob.loosest), self._serves)
        if found is not None:
            self._keep([found])

    def _comfortable(self, knob: Knob, found: Change) -> None:
        """A quarter more than the least, where the least is out of all proportion: at the edge of what can be reached,
        fleets grow without bound."""
        if not self.thorough or not isinstance(knob, Level) or not knob.up or isinstance(found.to, list | dict | str):
            return
        more = knob.change(on_rung(rung_above(found.to * _COMFORT)))
        tight, wide = self.trials.plan([found]), self.trials.plan([more])
        if tight is None or wide is None or tight.cost is None or wide.cost is None:
            return
        if wide.cost.usd_per_hour < _OUT_OF_PROPORTION * tight.cost.usd_per_hour:
            self._keep([more])

    def _comfortable_together(self, found: Changes) -> None:
        """As :meth:`_comfortable`, all targets of several changes a quarter looser, in place of the least."""
        wider = tuple(
            target(self.trials.resolved.instance, change.path, on_rung(rung_above(change.to * _COMFORT))) or change
            if isinstance(change.to, int | float) and change.to > 0
            else change
            for change in found
        )
        tight, wide = self.trials.plan(found), self.trials.plan(wider) if wider != found else None
        if tight is None or wide is None or tight.cost is None or wide.cost is None:
            return
        if wide.cost.usd_per_hour < _OUT_OF_PROPORTION * tight.cost.usd_per_hour:
            self._keep(wider)

    def _turned(self, knob: Knob, works: Callable[[Change], bool]) -> Change | None:
        """The least turn of a knob that works."""

        def tried(change: Change) -> bool:
            self.say(f"trying {change.text}")
            return works(change)

        if not isinstance(knob, Level):
            return next((change for change in knob.changes if tried(change)), None)
        value = nearest(
            knob.now,
            lambda value: tried(knob.change(knob.rounded(value))),
            up=knob.up,
            guess=knob.guess,
            loosest=knob.loosest,
            within=knob.within,
        )
        return None if value is None else knob.change(knob.rounded(value))

    def _keep(self, changes: Sequence[Change]) -> bool:
        """Keep changes as a mend where they give a plan."""
        plan = self.trials.plan(changes)
        if plan is None or plan.cost is None:
            return False
        if len(changes) == 1:
            self.mends[changes[0].path, repr(changes[0].to)] = _mend(changes[0], plan)
        else:
            self.together = [_mend(change, plan) for change in changes]
        return True

    def _several(self, *, openings: bool) -> None:
        """What gives every class a way, or leaves it out where nothing does, and limits of the fleet on top where they still
        are in the way; ``openings`` where raising limits is not enough."""
        changes: Changes = ()
        for name in self._stranded():
            if not self.trials.has_way(changes, name):
                way = self.ways.get(name) or self._way_out(changes, name) or (leaving_out(name),)
                changes += tuple(change for change in way if change not in changes)
        if changes and self._keep(changes):
            self._comfortable_together(changes)
            return
        self.say("trying several limits together")
        more = self._raised(changes)
        for further in self._openings(changes) if openings and not more else ():
            changes += further
            more = self._raised(changes)
            if more or self._keep(changes):
                break
        if more:
            self._keep([*changes, *more])

    def _raised(self, changes: Changes) -> list[Change]:
        """Limits of the fleet to raise after changes, for the least demand that the objective may plan for."""
        offer = self.trials.offer(changes)
        if offer is None:
            return []
        instance, least = offer[0].instance, 1.0
        if instance.objective == "goodput":
            least = _ANY_GOODPUT
        elif isinstance(instance.objective, CostOverRange):
            least = instance.objective.rate_multiple[0]
        settings = Settings(gap=0.0, time_limit_s=None, threads=instance.solver.threads)
        return together(offer[1].problem.at(least), self.solver, settings)

    def _openings(self, changes: Changes) -> Iterator[Changes]:
        """What lets further fleets in where raising limits is not enough: nothing required, then prices for all entries."""
        offer = self.trials.offer(changes)
        if offer is None:
            return
        if offer[1].problem.limits.required:
            yield (not_required(),)
        priced = tuple(choice.changes[0] for choice in prices(*offer))
        if priced:
            yield priced

    def _way_out(self, before: Changes, name: str) -> Changes | None:
        """Changes, one after another, each of which brings a class past the limit that stops it; None where they lead
        nowhere."""
        changes = before
        for _ in range(_MOST_STEPS):
            reason, offer = self.trials.reason(changes, name), self.trials.offer(changes)
            if reason is None or offer is None:
                return changes[len(before) :] if offer is not None else None
            further = partial(self._further, changes, reason)
            step = next((c for knob in knobs(reason, *offer) if (c := self._turned(knob, further)) is not None), None)
            if step is None:
                opened = all_ways(offer[0].instance)
                every = (*changes, *opened)
                return every[len(before) :] if opened and self.trials.has_way(every, name) else None
            changes = (*(change for change in changes if change.path != step.path), step)
        return None

    def _further(self, before: Changes, reason: Reason, change: Change) -> bool:
        """Whether a change brings a class past a reason."""
        assert reason.request_class is not None
        after = (*before, change)
        if self.trials.offer(after) is None:
            return False
        now = self.trials.reason(after, reason.request_class)
        return now is None or progress(now) > progress(reason)


_ANY_GOODPUT = 1e-3
"""A multiple of the demand that counts as some goodput."""
_MOST_STEPS = 4
"""Changes of one class that are looked for in a row."""
_COMFORT = 1.25
_OUT_OF_PROPORTION = 0.5
"""A target a quarter looser is a mend of its own where its plan costs less than half."""


def _mend(change: Change, plan: PlanDocument) -> Mend:
    assert plan.cost is not None
    return Mend(change=change.path, to=change.to, text=change.text, usd_per_hour=plan.cost.usd_per_hour)
