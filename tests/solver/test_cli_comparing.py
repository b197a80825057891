"""`epd-opt compare` and the gates of `epd-opt solve` end with their codes, on files and in pipelines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from epd_opt.comparison import comparison_json_schema
from epd_opt.document import plan_json_schema
from epd_opt.instance import instance_json_schema
from support.documents import modelled

DESK = """\
schema: epd-opt/instance/v1
name: desk
candidates: {modelled: false}
workload:
  classes:
    - {name: chat, rate_per_s: 9}
devices:
  - {sku: A, price: {usd_per_hour: 2}, stock: 40}
workers:
  - {name: w, sku: A, devices: 1, stages: [prefill, decode], max_rate_per_s: 4}
"""


@pytest.fixture
def run(run, monkeypatch, tmp_path):
    """Run the command in a folder with an instance and its plan."""
    monkeypatch.chdir(tmp_path)
    Path("desk.yaml").write_text(DESK)
    assert run("solve", "desk.yaml", "-q", "-o", "plan.json")[0] == 0
    return run


def dearer(price):
    """The option that gives A another price."""
    return ("--set", f"devices.A.price.usd_per_hour={price}")


@pytest.mark.parametrize(
    ("price", "most", "code", "said"),
    [
        (2.1, "5%", 0, "+5.00% against 0.000185185 in plan.json, within the limit of +5%"),
        (2.11, "5%", 7, "+5.50% against 0.000185185 in plan.json, above the limit of +5%"),
        (1.5, "0%", 0, "-25.00% against 0.000185185 in plan.json, within the limit of +0%"),
        (2, "0%", 0, "+0.00% against"),
    ],
)
def test_a_request_may_cost_so_much_more_than_in_the_baseline(run, price, most, code, said):
    """Exactly the limit is within it."""
    ended, _, err = run("solve", "desk.yaml", *dearer(price), "--baseline", "plan.json", "--max-increase", most)
    assert ended == code
    assert said in err


def test_a_baseline_alone_reports(run):
    """And quietly nothing, unless a limit is breached."""
    options = ("solve", "desk.yaml", *dearer(4), "--baseline", "plan.json")
    code, _, err = run(*options)
    assert (code, err) == (0, "a request costs 0.00037037 USD, +100.00% against 0.000185185 in plan.json\n")
    assert run(*options, "-q")[2] == ""
    assert "above the limit" in run(*options, "-q", "--max-increase", "50%")[2]


def test_both_gates_are_judged_and_the_plan_is_still_printed(run):
    """Standard output stays one JSON document; a breach of either is 7."""
    code, out, err = run(
        *("solve", "desk.yaml", "--json", *dearer(4), "--fail-above", "0.0001"),
        *("--baseline", "plan.json", "--max-increase", "500%"),
    )
    assert code == 7
    assert json.loads(out)["cost"]["usd_per_hour"] == 12.0
    assert "above the limit of 0.0001" in err
    assert "within the limit of +500%" in err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--max-increase", "5%"), 2, "expected --baseline PLAN"),
        (("--baseline", "plan.json", "--max-increase", "5"), 2, "expected per cent as 5%"),
        (("--baseline", "plan.json", "--max-increase", "-5%"), 2, "expected per cent as 5%"),
        (("--baseline", "none.json"), 3, "none.json: not a plan"),
        (("--baseline", "desk.yaml"), 3, "desk.yaml: not a plan"),
        (("--baseline", "infeasible.json"), 3, "infeasible.json: the plan is infeasible: it has no cost per request"),
        (
            ("--baseline", "plan.json", "--set", "limits.devices=0", "--max-increase", "5%"),
            4,
            "no cost per request to compare",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(run, options, code, said):
    """Wrong usage before the work, and infeasible stays infeasible."""
    Path("infeasible.json").write_text(run("solve", "desk.yaml", "--json", "--set", "limits.devices=0")[1])
    ended, _, err = run("solve", "desk.yaml", *options)
    assert ended == code
    assert said in err


def test_standard_input_is_an_instance_or_a_plan(run):
    """`solve - --json | compare plan.json -` shows what an edit changes."""
    code, out, _ = run("solve", "-", "--json", "-q", stdin=DESK.replace("9}", "18}"))
    assert code == 0
    code, text, err = run("compare", "plan.json", "-", stdin=out)
    assert (code, err) == (0, "")
    assert "workload.classes.chat.rate_per_s" in text
    assert "<stdin> against plan.json" in text
    assert run("solve", "desk.yaml", "-q", "--baseline", "-", stdin=out)[0] == 0


def test_comparisons_are_one_strict_json_document(run):
    """It keeps its schema."""
    code, out, err = run("compare", "--json", "plan.json", "plan.json")
    assert (code, err) == (0, "")
    jsonschema.Draft202012Validator(comparison_json_schema()).validate(json.loads(out))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("plan.json",), 2, "at least two plans"),
        ((), 2, "Missing argument"),
        (("-", "-"), 2, "standard input can be read once"),
        (("plan.json", "none.json"), 3, "none.json: not a plan"),
        (("plan.json", "-"), 3, "<stdin>: not a plan"),
    ],
)
def test_wrong_comparisons_are_refused(run, arguments, code, said):
    """Usage is 2, a file that is no plan is 3."""
    ended, out, err = run("compare", *arguments, stdin="[]")
    assert (ended, out) == (code, "")
    assert said in err


def keeps_its_schemas(document):
    """A plan and the instance inside it against the printed schemas."""
    jsonschema.Draft202012Validator(plan_json_schema()).validate(document)
    jsonschema.Draft202012Validator(instance_json_schema()).validate(document["instance_document"])


@pytest.mark.parametrize(
    ("overrides", "status"),
    [
        ((), "optimal"),
        (("limits.usd_per_hour=1",), "infeasible"),
        (("objective=goodput", "limits.usd_per_hour=20"), "optimal"),
        (("objective={minimise: cost_per_request, rate_multiple: [0.5, 2]}",), "optimal"),
        (("redundancy.spare_replicas=1", "workload.classes.chat.rate_per_s=0"), "optimal"),
    ],
)
def test_schemas_cover_what_solving_emits(run, overrides, status):
    """Plans of every ending and objective, and the instances inside them, keep to the printed schemas."""
    settings = [argument for one in overrides for argument in ("--set", one)]
    _, out, _ = run("solve", "desk.yaml", "--json", "-q", *settings)
    assert json.loads(out)["status"] == status
    keeps_its_schemas(json.loads(out))


@pytest.mark.parametrize(
    ("overrides", "status"),
    [(("workload.classes.chat.slo.e2e_ms=60000",), "optimal"), (("workload.classes.chat.slo.ttft_ms=1",), "infeasible")],
)
def test_schemas_cover_plans_of_modelled_fleets(run, overrides, status):
    """With cards, assumptions, operating points and a target on the whole time."""
    settings = [argument for one in overrides for argument in ("--set", one)]
    _, out, _ = run("solve", "-", "--json", "-q", "--gap", "0.1", *settings, stdin=json.dumps(modelled()))
    assert json.loads(out)["status"] == status
    keeps_its_schemas(json.loads(out))


def test_the_printed_plan_keeps_its_schema_key_by_key(run):
    """Every key that is written is described; taking one away or adding one breaks the schema."""
    document = json.loads(Path("plan.json").read_text())
    validator = jsonschema.Draft202012Validator(plan_json_schema())
    validator.validate(document)
    for key in ("schema", "status", "cost", "pools", "classes", "devices", "goodput", "provenance"):
        assert not validator.is_valid({k: v for k, v in document.items() if k != key}), key
    assert not validator.is_valid({**document, "more": 1})
    assert not validator.is_valid({**document, "status": "fine"})
