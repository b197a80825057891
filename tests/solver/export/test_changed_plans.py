"""Plans that were changed by hand: no bill is written of counts and costs that do not hang together, and nothing breaks."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt import InvalidInput
from epd_opt.explain import plan_or_instance
from epd_opt.export import export
from epd_opt.report import report_html
from support.commands import Run
from support.documents import day, measured

Document = dict[str, Any]


@cache
def solved(kind: str) -> str:
    return epd_opt.solve({"measured": measured, "day": day}[kind]()).to_json()


def big(document: Document) -> Document:
    use: Document = document["devices"]["big"]
    return use


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d["pools"][0].update(replicas=d["pools"][0]["replicas"] + 1), "pools.0.devices"),
        (lambda d: d["pools"][0].update(devices=0.5), "pools.0.devices"),
        (lambda d: big(d).update(bought=big(d)["bought"] - 1), "devices.big"),
        (lambda d: big(d).update(bought=-3), "devices.big"),
        (lambda d: big(d).update(used=1), "devices.big.used"),
        (lambda d: d["devices"]["small"].update(owned=9), "devices.small.owned"),
        (lambda d: d["instance_document"]["devices"][0].pop("price"), "devices.big"),
        (lambda d: d["instance_document"]["devices"][0]["price"].update(usd_per_hour=99), "devices.big.usd_per_hour"),
        (lambda d: d["cost"].update(usd_per_hour=1.0), "cost.usd_per_hour"),
        (lambda d: d["cost"].update(usd_per_month=1.0), "cost.usd_per_month"),
        (lambda d: d["classes"]["chat"].update(routes=[]), "classes.chat.routes"),
        (lambda d: d["instance_document"]["workload"]["classes"][0].update(rate_per_s=9), "instance_document"),
        (lambda d: d["instance_document"]["devices"][0]["price"].update(usd_per_hour=-1), "devices.big.price.usd_per_hour"),
    ],
)
@pytest.mark.parametrize("to", ["bom-csv", "xlsx"])
def test_no_bill_of_what_does_not_add_up(change: Callable[[Document], None], where: str, to: str) -> None:
    """The first count or cost that does not follow from the others is named, and no device without a price is billed."""
    document = json.loads(solved("measured"))
    export(epd_opt.Plan.load(document).document, "bom-csv")
    change(document)
    with pytest.raises(InvalidInput) as caught:
        export(epd_opt.Plan.load(document).document, to)
    assert where in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d["pools"][0].update(stages=[]), "pools.0.stages"),
        (lambda d: d["devices"].pop(d["pools"][0]["device"]), "pools.0.device"),
        (lambda d: d["classes"].pop("chat"), "classes.chat"),
        (lambda d: d.update(instance_document={}), "instance_document"),
    ],
)
def test_what_later_work_stands_on_is_looked_at_first(change: Callable[[Document], None], where: str) -> None:
    """A plan without stages, units, classes or its instance is refused when it is loaded, with the place."""
    document = json.loads(solved("measured"))
    change(document)
    with pytest.raises(InvalidInput) as caught:
        epd_opt.Plan.load(document)
    assert where in [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize("text", ["NaN", "Infinity"])
def test_numbers_that_are_none_are_refused_however_a_plan_is_read(tmp_path: Path, text: str) -> None:
    """Explanations and tariffs, which take instances too, read plans as strictly as all others."""
    document = json.loads(solved("measured"))
    document["cost"]["usd_per_hour"] = float(text)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    for read in (epd_opt.Plan.load, plan_or_instance):
        with pytest.raises(InvalidInput, match=f"{file}: not a plan: found {text}"):
            read(str(file))


def test_the_day_is_billed_and_shown_as_it_is() -> None:
    """A plan by the hour passes: its hired units are means, and no hour uses more than is held."""
    document = json.loads(solved("day"))
    assert export(epd_opt.Plan.load(document).document, "bom-csv").content
    assert report_html(epd_opt.Plan.load(document).document)
    document["cost"]["usd_per_hour"] += 1.0
    with pytest.raises(InvalidInput, match=r"cost\.usd_per_hour"):
        export(epd_opt.Plan.load(document).document, "bom-csv")


@pytest.mark.parametrize("command", ["report", "compare", "tariffs", "explain", "simulate", "tolerance"])
def test_no_command_takes_a_plan_that_does_not_add_up(command: str, run: Run, tmp_path: Path) -> None:
    """Whatever is asked of it, the file and the place are named, and nothing is answered."""
    document = json.loads(solved("measured"))
    document["cost"]["usd_per_hour"] = 1.0
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    code, out, err = run(command, *[str(file)] * (2 if command == "compare" else 1))
    assert (code, out) == (3, "")
    assert f"{file}: cost.usd_per_hour: found 1, the devices cost" in err


def test_the_hours_of_a_plan_are_those_of_its_instance() -> None:
    """A day without its hours, or with other requests in them, is none."""
    document = json.loads(solved("day"))
    with pytest.raises(InvalidInput, match="scenarios: found none"):
        export(epd_opt.Plan.load({**document, "scenarios": []}).document, "bom-csv")
    document["instance_document"]["workload"]["classes"][0]["rate_per_s"] *= 2
    with pytest.raises(InvalidInput, match="is not the instance that was planned"):
        export(epd_opt.Plan.load(document).document, "bom-csv")
