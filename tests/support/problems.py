"""Small abstract planning problems: no hardware, only rows, arcs and prices."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from epd_models.candidate import STATES, Arc, Candidate, Node, OperatingPoint, Stage, State
from epd_models.parallelism import Parallelism
from epd_models.provenance import Confidence
from epd_models.row import Row
from epd_models.transfer import Sender
from epd_opt.problem import Demand, Limits, Offer, PlanningProblem

STAGES_OF: Mapping[tuple[State, State], tuple[Stage, ...]] = {
    ("raw", "encoded"): ("encode",),
    ("raw", "prefilled"): ("encode", "prefill"),
    ("raw", "done"): ("encode", "prefill", "decode"),
    ("encoded", "prefilled"): ("prefill",),
    ("encoded", "done"): ("prefill", "decode"),
    ("prefilled", "done"): ("decode",),
}


def offer(name: str, usd_per_hour: float = 1.0, **changes: object) -> Offer:
    """Terms of an entry; everything but the rent at zero, and no stock limit."""
    terms: dict[str, object] = {
        "stock": None,
        "owned": 0,
        "lot": 1,
        "used_usd_per_hour": 0.0,
        "owned_usd_per_hour": 0.0,
        "busy_usd_per_unit_second": 0.0,
        "capex_usd": 0.0,
        "power_w": 0.0,
    }
    return Offer(name=name, sku=name, usd_per_hour=usd_per_hour, **{**terms, **changes})  # type: ignore[arg-type]


def arc(
    name: str, start: State, end: State, *, given: tuple[Sender, int] | None = None, to: tuple[Sender, int] | None = None
) -> Arc:
    """A passage; ``given`` and ``to`` are sender and level at a hand-over, None where the class enters or ends."""
    begin = Node(state=start) if given is None else Node(state=start, sender=given[0], level=given[1])
    finish = Node(state=end) if to is None else Node(state=end, sender=to[0], level=to[1])
    return Arc(request_class=name, start=begin, end=finish)


def candidate(
    key: str,
    arcs: Sequence[Arc],
    rows: Sequence[Row],
    *,
    device: str = "a",
    pool: str | None = None,
    units: Fraction | int = 1,
    busy_s: Mapping[str, float] | None = None,
) -> Candidate:
    """A candidate; stages follow from its arcs, and ``busy_s`` is 0 where not stated."""
    states = [STATES.index(a.start.state) for a in arcs], [STATES.index(a.end.state) for a in arcs]
    stages = STAGES_OF[STATES[min(states[0])], STATES[max(states[1])]]
    return Candidate(
        key=key,
        pool=pool or key,
        placement="-".join(stages),
        stages=stages,
        device=device,
        sku=device,
        parallelism=Parallelism(),
        units=Fraction(units),
        arcs=tuple(sorted(arcs)),
        rows=tuple(rows),
        busy_s={a.request_class: (busy_s or {}).get(a.request_class, 0.0) for a in arcs},
        operating_point=OperatingPoint(),
        provenance="measured",
        confidence=Confidence.USER,
    )


def planning_problem(
    demands: Mapping[str, float],
    candidates: Iterable[Candidate],
    offers: Iterable[Offer],
    *,
    limits: Limits | None = None,
    spare_replicas: int = 0,
) -> PlanningProblem:
    """A problem in canonical order; mean rates equal the rates."""
    return PlanningProblem(
        demands=tuple(Demand(name=name, rate=rate, mean_rate=rate) for name, rate in sorted(demands.items())),
        candidates=tuple(sorted(candidates, key=lambda c: c.key)),
        offers=tuple(sorted(offers, key=lambda o: o.name)),
        limits=limits or Limits(),
        spare_replicas=spare_replicas,
    )


def random_problem(seed: int, *, energy: bool = False) -> PlanningProblem:
    """A problem of up to three classes and up to five candidates, small enough to enumerate.

    Some classes start raw, some encoded; hand-overs have two levels and up to two senders; operating points share
    pools; entries have lots, stock, owned units and dear or cheap running costs; some problems have limits or spares.
    Many are infeasible.

    Parameters
    ----------
    energy : bool
        Whether work costs energy, so that the cost depends on the routing.
    """
    dice = random.Random(seed)
    names = [f"c{i}" for i in range(dice.randint(1, 3))]
    vision = {name: dice.random() < 0.5 for name in names}
    demands = tuple(
        Demand(name=name, rate=rate, mean_rate=rate * dice.choice([0.25, 0.5, 1.0]))
        for name in names
        for rate in [round(dice.uniform(0.5, 4.0), 2)]
    )
    senders = [Sender(bandwidth=1.0), Sender(bandwidth=2.0)]
    devices = ["a", "b"][: dice.randint(1, 2)]
    spans = dice.choice(
        [
            [("encoded", "done"), ("raw", "done")],
            [("raw", "encoded"), ("encoded", "done"), ("raw", "done")],
            [("encoded", "prefilled"), ("raw", "prefilled"), ("prefilled", "done")],
            [("raw", "encoded"), ("encoded", "prefilled"), ("prefilled", "done")],
        ]
    )
    wanted = list(spans) + [dice.choice(spans) for _ in range(dice.randint(0, 5 - len(spans)))]
    candidates = []
    for k, (start, end) in enumerate(wanted):
        arcs: list[Arc] = []
        for name in names:
            if dice.random() < 0.15:
                continue
            begin: State = "encoded" if start == "raw" and not vision[name] else start
            if begin == end:
                continue
            enters = begin == ("raw" if vision[name] else "encoded")
            starts: list[tuple[Sender, int] | None] = [None]
            if not enters:
                if begin == "raw":
                    continue
                starts = [(sender, dice.randint(0, 1)) for sender in senders if dice.random() < 0.8]
            sender = dice.choice(senders)
            for given in starts:
                to = None if end == "done" else (sender, dice.randint(0, 1))
                arcs.append(arc(name, begin, end, given=given, to=to))
        if not arcs:
            continue
        served = sorted({a.request_class for a in arcs})
        rows = [
            Row(
                kind=kind,
                load=tuple((name, round(dice.uniform(0.05, 0.6), 2)) for name in served if dice.random() < 0.9),
                setup=dice.choice([0.0, 0.0, 0.3, 1.0]),
            )
            for kind in dice.choice([["rate"], ["work", "kv_memory"], ["time", "interval", "interval"]])
        ]
        if dice.random() < 0.2:
            rows.append(Row(kind="minimum", load=(), setup=2.0))
        candidates.append(
            candidate(
                f"k{k}",
                arcs,
                rows,
                device=dice.choice(devices),
                units=dice.choice([1, 1, 2, Fraction(1, 2)]),
                busy_s={name: round(dice.uniform(0.0, 0.5), 2) for name in served},
            )
        )
    twin = next((c for c in candidates if dice.random() < 0.4), None)
    if twin is not None and len(candidates) < 5:
        lighter, dearer, more = dice.choice([0.8, 1.0, 1.2]), dice.choice([0.5, 1.0, 1.5]), dice.choice([0.0, 0.5])
        rows = [Row(kind=r.kind, load=tuple((n, v * lighter) for n, v in r.load), setup=r.setup + more) for r in twin.rows]
        busy_s = {name: seconds * dearer for name, seconds in twin.busy_s.items()}
        candidates.append(
            candidate(f"{twin.key}+", twin.arcs, rows, device=twin.device, pool=twin.pool, units=twin.units, busy_s=busy_s)
        )
    offers = [
        offer(
            name,
            dice.choice([0.0, 0.7, 1.0, 1.5, 3.25]),
            stock=(stock := dice.choice([None, None, 3, 6, 9])),
            owned=min(dice.choice([0, 0, 1, 3]), 9 if stock is None else stock),
            lot=dice.choice([1, 1, 2, 4]),
            used_usd_per_hour=dice.choice([0.0, 0.0, 0.2]),
            owned_usd_per_hour=dice.choice([0.0, 0.1, 2.0]),
            busy_usd_per_unit_second=dice.choice([0.0, 2e-4]) if energy else 0.0,
            power_w=dice.choice([300.0, 1000.0]),
        )
        for name in devices
    ]
    limits = Limits(
        usd_per_hour=dice.choice([None, None, None, 6.0, 12.0]),
        power_w=dice.choice([None, None, None, 4000.0]),
        devices=dice.choice([None, None, None, 5]),
    )
    return PlanningProblem(
        demands=demands,
        candidates=tuple(sorted(candidates, key=lambda c: c.key)),
        offers=tuple(offers),
        limits=limits,
        spare_replicas=dice.choice([0, 0, 0, 1]),
    )


def stocked_problem(seed: int) -> PlanningProblem:
    """A random problem whose entries all have a stock of a few units; work costs energy at even seeds."""
    dice, problem = random.Random(seed), random_problem(seed, energy=seed % 2 == 0)
    stocks = [dice.choice([2, 3, 4]) for _ in problem.offers]
    offers = [replace(o, stock=s, owned=min(o.owned, s)) for o, s in zip(problem.offers, stocks, strict=True)]
    return replace(problem, offers=tuple(offers))
