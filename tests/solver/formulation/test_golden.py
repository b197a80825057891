"""Every constraint family, the objective and the bounds, as rows that a reader can check by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import pulp
import pytest

from epd_models.row import Row
from epd_models.transfer import Sender
from epd_opt.formulation import build
from epd_opt.formulation.constraints import FAMILIES
from epd_opt.nodes import Nodes
from epd_opt.problem import Demand, Limits, PlanningProblem
from support.golden import GOLDEN, SENSES, check, expression
from support.problems import arc, candidate, offer, planning_problem

FAST, SLOW = Sender(bandwidth=2.0), Sender(bandwidth=1.0)


def one_pool(**changes: object) -> PlanningProblem:
    """Four chats and two drafts a second on one kind of worker, two units each."""
    worker = candidate(
        "worker",
        [arc("chat", "encoded", "done"), arc("draft", "encoded", "done")],
        [Row(kind="time", load=(("chat", 0.25), ("draft", 0.5)), setup=0.5), Row(kind="kv_memory", load=(("chat", 0.5),))],
        units=2,
    )
    return replace(planning_problem({"chat": 4.0, "draft": 2.0}, [worker], [offer("a", 3.0)]), **changes)  # type: ignore[arg-type]


def split() -> PlanningProblem:
    """Prompts handed over by two senders, early or late, to a decoder that takes early ones only from the fast sender."""
    read = Row(kind="work", load=(("chat", 0.5),))
    fast = candidate("fast", [arc("chat", "encoded", "prefilled", to=(FAST, 0))], [read])
    slow = candidate("slow", [arc("chat", "encoded", "prefilled", to=(SLOW, 1))], [read])
    takes = [arc("chat", "prefilled", "done", given=given) for given in ((FAST, 0), (FAST, 1), (SLOW, 1))]
    decoder = candidate("decoder", takes, [Row(kind="time", load=(("chat", 0.25),))])
    return planning_problem({"chat": 4.0}, [fast, slow, decoder], [offer("a")])


def two_entries(limits: Limits | None = None) -> PlanningProblem:
    """A worker on rented units and one on bought units in lots of eight, two of them owned; work costs energy there."""
    rows = [Row(kind="rate", load=(("chat", 0.5),))]
    passage = [arc("chat", "encoded", "done")]
    rented = candidate("rented", passage, rows, device="a")
    bought = candidate("bought", passage, rows, device="b", units=Fraction(1, 2), busy_s={"chat": 0.5})
    terms = offer(
        "b",
        0.5,
        stock=16,
        owned=2,
        lot=8,
        used_usd_per_hour=0.125,
        busy_usd_per_unit_second=1 / 14400,
        power_w=500.0,
    )
    problem = planning_problem(
        {"chat": 4.0}, [rented, bought], [offer("a", 2.0, owned_usd_per_hour=0.25, power_w=1000.0), terms], limits=limits
    )
    return replace(problem, demands=(Demand(name="chat", rate=4.0, mean_rate=2.0),))


def with_spares() -> PlanningProblem:
    """Two operating points of one pool and one of another; one spare for each pool."""
    passage = [arc("chat", "encoded", "done")]
    rows = [Row(kind="rate", load=(("chat", 0.5),))]
    points = [candidate(key, passage, rows, pool="shared", units=2) for key in ("near", "tight")]
    other = candidate("other", passage, rows)
    return planning_problem({"chat": 4.0}, [*points, other], [offer("a")], spare_replicas=1)


def in_servers(*, owned: int = 0, whole: bool = True) -> PlanningProblem:
    """Workers of one, three and five units in servers of eight; one spare each."""
    rows = [Row(kind="rate", load=(("chat", 0.5),))]
    workers = [candidate(f"of {n}", [arc("chat", "encoded", "done")], rows, units=n) for n in (1, 3, 5)]
    nodes = Nodes(unit=1, inner=8, domain=8, chunk=8, whole=whole)
    terms = offer("a", 3.0, lot=8 if whole else 1, owned=owned, nodes=nodes)
    return planning_problem({"chat": 4.0}, workers, [terms], spare_replicas=1)


def with_terms(**changes: int) -> PlanningProblem:
    """Two entries, one of them on other terms."""
    problem = two_entries()
    return replace(problem, offers=(problem.offers[0], replace(problem.offers[1], **changes)))


PROBLEMS: dict[str, Callable[[], PlanningProblem]] = {
    "demand": one_pool,
    "hand_over": split,
    "capacity": one_pool,
    "linking": split,
    "replica_bounds": one_pool,
    "units_used": with_spares,
    "pool_opening": with_spares,
    "buying": two_entries,
    "stock": two_entries,
    "device_limit": lambda: two_entries(Limits(devices=12)),
    "budget": lambda: two_entries(Limits(usd_per_hour=20.0)),
    "power": lambda: two_entries(Limits(power_w=9000.0)),
    "packing": lambda: in_servers(owned=12),
    "minimum_order": lambda: with_terms(minimum=12),
    "sku_limit": lambda: two_entries(Limits(skus=1)),
    "requirement": lambda: two_entries(Limits(required=(("npu", ("b",)),))),
    "rack_power": lambda: two_entries(Limits(rack_w=2500.0, racks=5)),
    "zone_loss": lambda: replace(with_spares(), zones=4, lost_zones=1),
}


def rows(problem: PlanningProblem, family: Callable[..., Iterator[tuple[str, pulp.LpConstraint]]]) -> list[str]:
    """One line per row of a family."""
    built = build(problem)
    return [
        f" {name}: {expression(row)} {SENSES[row.sense]} {0.0 - row.constant:.12g}"
        for name, row in family(built.sets, built.variables)
    ]


def legend(problem: PlanningProblem) -> list[str]:
    """What the indices of a problem stand for."""
    built = build(problem)
    lines = [f"\\ {demand.name}: class {c}" for c, demand in enumerate(problem.demands)]
    lines += [f"\\ {one.key}: candidate {k}" for k, one in enumerate(problem.candidates)]
    return lines + [f"\\ {name}: entry {d}" for d, name in enumerate(built.sets.offers)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_rows_are_those_of_the_golden_file(family: Callable[..., Iterator[tuple[str, pulp.LpConstraint]]]) -> None:
    """The rows of a family over its little problem, to the last coefficient."""
    problem = PROBLEMS[family.__name__]()
    lines = rows(problem, family)
    assert lines, "the problem shows nothing of the family"
    check(family.__name__, [*legend(problem), "Subject To", *lines])


def test_every_family_has_a_golden_file_and_no_file_is_left_over() -> None:
    """A family without a golden file fails here, and so does a file without its family."""
    files = {path.stem for path in GOLDEN.glob("*.lp")}
    assert files == {family.__name__ for family in FAMILIES} | {"objective", "variables", "occasions"}


def test_the_objective_is_that_of_the_golden_file() -> None:
    """Lots, idle energy, energy of the work at the mean rate, and the ties, with the dearest unit-hour at 1000."""
    problem = two_entries()
    check("objective", [*legend(problem), "Minimize", f" cost: {expression(build(problem).model.objective)}"])


def test_the_variables_are_those_of_the_golden_file() -> None:
    """Bounds follow from demand, stock and owned units; counts are whole."""
    problem = two_entries()
    lines = [*legend(problem), "Bounds"]
    variables = sorted(build(problem).model.variables(), key=lambda v: v.name)
    lines += [f" {v.lowBound:g} <= {v.name} <= {v.upBound:g}" for v in variables]
    lines += ["General", *(f" {v.name}" for v in variables if v.cat == pulp.LpInteger)]
    check("variables", lines)


def test_every_row_of_a_model_has_its_own_name() -> None:
    """No two rows share a name, so none is lost."""
    limits = Limits(devices=12, usd_per_hour=20.0, power_w=9000.0)
    for problem in (split(), with_spares(), two_entries(limits)):
        built = build(problem)
        names = [name for family in FAMILIES for name, _ in family(built.sets, built.variables)]
        assert len(set(names)) == len(names) == len(built.model.constraints())
