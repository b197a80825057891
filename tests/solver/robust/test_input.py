"""Scenarios as users write them: what they change, and complaints at the place of the mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt import Instance
from epd_opt.errors import InvalidInput, UsageError
from epd_opt.instance import instance_sha256
from epd_opt.scenarios import cases, one_case
from support.documents import measured

HEAD = """schema: epd-opt/instance/v1
candidates: {modelled: false}
workload:
  classes:
    - {name: chat, rate_per_s: 8, mean_rate_per_s: 4, text_tokens: {mean: 800, p95: 2400}}
devices:
  - {sku: a, price: {usd_per_hour: 2}, stock: 9}
workers:
  - {name: w, sku: a, devices: 1, stages: [prefill, decode], max_rate_per_s: 2}
"""


def stated(*scenarios: dict[str, Any], **changes: Any) -> Instance:
    """A measured instance with scenarios."""
    return Instance(**measured(scenarios=list(scenarios), **changes))


def test_scenarios_change_what_they_set_and_nothing_else() -> None:
    """A factor applies to what the instance states, a stated mean rate moves with its rate, weights add up to one."""
    instance = stated(
        {"name": "usual", "weight": 3},
        {"name": "peak", "set": {"workload.classes.*.rate_per_s": "x1.5", "cost.electricity_usd_per_kwh": 0.2}},
    )
    peak, usual = cases(instance)
    assert (peak.name, usual.name, peak.weight, usual.weight) == ("peak", "usual", 0.25, 0.75)
    rates = {r.name: (r.rate_per_s, r.mean_rate_per_s) for r in peak.instance.workload.classes}
    assert rates == {"album": (4.5, None), "chat": (18.0, 10.5)}
    assert peak.instance.cost.electricity_usd_per_kwh == 0.2
    assert usual.instance.document() == {**Instance(**measured()).document(), "name": "measured, usual"}


def test_a_rate_beyond_all_bounds_is_blamed_and_not_its_mean() -> None:
    """The mean follows the rate that the scenario sets, so the complaint is about the rate, once."""
    with pytest.raises(InvalidInput) as caught:
        cases(stated({"name": "far", "set": {"workload.classes.chat.rate_per_s": "x1e14"}}))
    (problem,) = caught.value.problems
    assert problem.path == 'scenarios.far.set["workload.classes.chat.rate_per_s"]'
    assert "mean_rate_per_s" not in problem.message


def test_a_mean_rate_that_is_set_itself_does_not_move() -> None:
    """What a scenario says of the mean rate stands, whatever it says of the rate."""
    changes = {"workload.classes.chat.mean_rate_per_s": 6, "workload.classes.chat.rate_per_s": 24}
    (only,) = cases(stated({"name": "peak", "set": changes}))
    assert [r.mean_rate_per_s for r in only.instance.workload.classes if r.name == "chat"] == [6.0]


def test_a_class_may_lose_its_images() -> None:
    """Nothing, as a value, takes away what the instance states."""
    (only,) = cases(stated({"name": "text", "set": {"workload.classes.album.images": None}}))
    assert not any(request.has_images for request in only.instance.workload.classes)


@pytest.mark.parametrize(
    ("scenario", "complaint"),
    [
        ("set: {workload.classes.chta.rate_per_s: 3}", "workload.classes.chta names nothing (did you mean chat?)"),
        ("set: {workload.classes.chat.rate_per_s: -3}", "found -3, expected at least 0"),
        ("set: {workload.classes.chat.rate_per_s: 3, workload.classes.*.rate_per_s: x2}", "is set twice, also by"),
        ("set: {workload.classes.chat.slo: x2}", "which no factor applies to"),
        ("set: {workload.classes.chat.output_tokens: x2}", "is not given in the instance"),
        ("set: {devices.a.stock: 3}", "no scenario may set this"),
        ("set: {workload.classes.chat.text_tokens.p95: many}", "found the text 'many', expected a number"),
        ("weight: 0", "found 0, expected more than 0"),
        ("wieght: 1", "unknown key 'wieght' (did you mean weight?)"),
    ],
)
def test_a_complaint_stands_at_its_place(tmp_path: Path, scenario: str, complaint: str) -> None:
    """File, line and column of the scenario's own line, its address, what was found and what was meant."""
    file = tmp_path / "instance.yaml"
    file.write_text(f"{HEAD}scenarios:\n  - name: odd\n    {scenario}\n", encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        epd_opt.read(file)
    (problem,) = caught.value.problems
    assert (problem.line, problem.file) == (12, str(file))
    assert problem.column is not None
    assert problem.path.startswith("scenarios.odd.")
    assert complaint in str(problem)


@pytest.mark.parametrize(
    ("text", "path", "complaint"),
    [
        ("robust: {minimise: worst_cost}", "robust", "there are no scenarios to be robust over"),
        ("scenarios: [{name: a}, {name: a}]", "scenarios[1].name", "two scenarios are called 'a'"),
        ("scenarios: []", "scenarios", "expected at least one entry"),
        ("scenarios: [{name: a}]\nobjective: goodput", "objective", "no multiple of them is looked for"),
        ("scenarios: [{name: a}]\nrobust: {minimise: regret}", "robust.minimise", "expected expected_cost or"),
        ("scenarios: [{name: a}]\nrobust: {cvar_level: 0.5}", "robust.cvar_level", "belongs to minimise: cvar"),
        ("scenarios: [{name: a}]\nrobust: {minimise: cvar, cvar_level: 1}", "robust.cvar_level", "less than 1"),
        ("scenarios: [{name: a}]\nrobust: {served_share: 0}", "robust.served_share", "more than 0"),
    ],
)
def test_what_is_asked_over_scenarios_makes_sense(tmp_path: Path, text: str, path: str, complaint: str) -> None:
    """Robustness needs scenarios, names are unique, and each option belongs to its measure."""
    file = tmp_path / "instance.yaml"
    file.write_text(f"{HEAD}{text}\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=complaint) as caught:
        epd_opt.read(file)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_the_order_of_scenarios_is_no_part_of_the_instance() -> None:
    """The same hash and the same cases whichever scenario stands first; instances without any keep their hash."""
    one, other = {"name": "a"}, {"name": "b", "set": {"workload.classes.chat.rate_per_s": 9}}
    assert instance_sha256(stated(one, other)) == instance_sha256(stated(other, one))
    assert cases(stated(one, other)) == cases(stated(other, one))
    assert "scenarios" not in Instance(**measured()).document()


def test_one_case_is_taken_by_its_name() -> None:
    """A scenario of an instance by itself; another name is refused with those that there are."""
    instance = stated({"name": "usual"}, {"name": "peak", "set": {"workload.classes.chat.rate_per_s": 20}})
    assert one_case(instance, None) is instance
    assert max(r.rate_per_s for r in one_case(instance, "peak").workload.classes) == 20
    with pytest.raises(UsageError, match="no such scenario; it has peak; usual"):
        one_case(instance, "pek")
