"""The report of a plan says what the plan document says, of any name, on a page that needs nothing else."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

import epd_opt
from epd_opt.errors import InvalidInput
from epd_opt.report import report_html
from epd_opt.scenarios import one_case
from epd_opt.sensitivity import parse_vary
from epd_opt.tariffs import tariff_document
from support.documents import day, measured, modelled
from support.pages import Element, at, figures, read_page

NASTY = "<script>alert('x')</script> & \"q\"/~1\n\u202e…"


@functools.cache
def plan_of(kind: str) -> epd_opt.Plan:
    infeasible = functools.partial(measured, limits={"devices": 2})
    return epd_opt.solve({"modelled": modelled, "measured": measured, "infeasible": infeasible, "day": day}[kind]())


def study(plan: epd_opt.Plan) -> dict[str, Any]:
    """A small study document with a point without a plan and one where the fleet breaks."""
    path = "workload.classes.chat.rate_per_s"
    breaks = {"limit": "replicas", "text": "too few writers"}

    def point(rate: float, usd: float | None, kept: float | None) -> dict[str, Any]:
        fleet = {"usd_per_hour": kept, "feasible": kept is not None, "breaks": [] if kept else [breaks]}
        rest = {"usd_per_month": 0, "capex_usd": 0, "power_kw": 0, "bound_usd_per_hour": usd, "gap": 0}
        cost = None if usd is None else {"usd_per_hour": usd, "usd_per_request": usd / 3600 / rate, **rest}
        status = "infeasible" if usd is None else "optimal"
        regret = None if usd is None or kept is None else kept - usd
        found = {"at": {path: rate}, "status": status, "cost": cost, "pools": [], "kept_fleet": fleet}
        reasons = [{"limit": "stock", "text": "more than 16 of big"}] if usd is None else []
        return {**found, "regret_usd_per_hour": regret, "reasons": reasons}

    return {
        "schema": "epd-opt/study/v1",
        "instance": plan.instance,
        "instance_sha256": plan.provenance.instance_sha256,
        "epd_opt": plan.provenance.epd_opt,
        "today": {},
        "vary": [{"path": path, "values": [6, 12, 18, 24], "scaled": False}],
        "points": [point(6, 10.25, 20.0), point(12, 20.0, 20.0), point(18, 31.5, None), point(24, None, None)],
        "switch_points": [
            {"path": path, "at": 9.5, "below_at": 9, "tolerance": 1, "below": "integrated on big", "above": "prefill on big"}
        ],
    }


def page_of(plan: epd_opt.Plan, **extra: Any) -> Element:
    return read_page(report_html(plan.document, **extra))


def renamed(plan: epd_opt.Plan, name: str) -> dict[str, Any]:
    """The plan document with its instance, classes, devices and pools called ``name`` and more."""
    text = plan.to_json()
    for old in [*plan.classes, *plan.devices, *(pool.name for pool in plan.pools)]:
        text = text.replace(json.dumps(old), json.dumps(f"{name}{old}"))
    return {**json.loads(text), "instance": name, "warnings": [name]}


@pytest.mark.parametrize("kind", ["modelled", "measured", "infeasible", "day"])
def test_every_figure_is_that_of_the_document(kind: str) -> None:
    """A figure on the page carries the value at the place it names, and its text rounds to that value."""
    plan = plan_of(kind)
    shown = figures(page_of(plan))
    documents = {"plan": plan.to_dict()}
    if kind == "day":
        documents["tariffs"] = tariff_document(plan.document).model_dump()
    assert len(shown) > 2
    assert {document for document, *_ in shown} == set(documents)
    for document, pointer, value, text in shown:
        assert value == at(documents[document], pointer), pointer
        digits = re.search(r"[-+]?[\d,]*\.?\d+(e-?\d+)?", text)
        assert digits is not None, f"{pointer}: {text!r}"
        said = float(digits[0].replace(",", "")) / (100 if "%" in text else 1)
        assert said == pytest.approx(value, rel=6e-3, abs=6e-3 if value > 1e-2 else 0.0) or text == "<1%", (
            f"{pointer}: {text}"
        )


@pytest.mark.parametrize("kind", ["modelled", "measured"])
def test_everything_of_the_fleet_is_shown(kind: str) -> None:
    """Costs, pools, classes and devices of the plan all stand on the page, each at its own place."""
    plan = plan_of(kind)
    places = {pointer for _, pointer, _, _ in figures(page_of(plan))}
    wanted = {f"/cost/{key}" for key in plan.cost.model_dump()}
    wanted |= {f"/pools/{i}/{key}" for i in range(len(plan.pools)) for key in ("replicas", "devices", "usd_per_hour")}
    wanted |= {f"/pools/{i}/utilisation/{kind}" for i, pool in enumerate(plan.pools) for kind in pool.utilisation}
    wanted |= {f"/pools/{i}/serves/{name}" for i, pool in enumerate(plan.pools) for name in pool.serves}
    wanted |= {f"/classes/{name}/rate_per_s" for name in plan.classes}
    for name, result in plan.classes.items():
        wanted |= {f"/classes/{name}/{key}" for key in ("ttft_ms", "itl_ms") if getattr(result, key) is not None}
    wanted |= {f"/devices/{name}/{key}" for name in plan.devices for key in ("used", "owned", "bought", "usd_per_hour")}
    assert wanted <= places


def test_a_day_shows_commitment_hours_and_ways_to_pay() -> None:
    """Every commitment, each group of hours with what runs, is hired and stands idle, and single tariffs are on the page;
    the picture has a bar for each hour."""
    plan = plan_of("day")
    page, hours = page_of(plan), plan.document.hours
    places = {pointer for _, pointer, _, _ in figures(page.by_id("hours"))}
    keys = ("units", "idle_unit_usd_per_hour", "idle_unit_hours_per_day", "idle_usd_per_day")
    wanted = {f"/hours/committed/{i}/{key}" for i in range(len(hours.committed)) for key in keys}
    wanted |= {
        f"/scenarios/{i}/pools/{j}/replicas"
        for i, result in enumerate(plan.document.scenarios)
        for j in range(len(result.pools))
    }
    for hour in (0, 12):
        one = hours.hours[hour]
        wanted |= {f"/hours/hours/{hour}/usd_per_hour"} | {f"/hours/hours/{hour}/hired/{name}" for name in one.hired}
        wanted |= {f"/hours/hours/{hour}/idle/{name}" for name, units in one.idle.items() if units}
    alone = [one.usd_per_hour for one in hours.single_tariffs]
    wanted |= {f"/hours/single_tariffs/{i}/usd_per_hour" for i, usd in enumerate(alone) if usd is not None}
    assert hours.hours[12].hired
    assert wanted <= places
    wide = next(e for e in page.by_id("hours").all("svg") if e.attributes["class"] == "graph wide")
    night, noon = wide.all("g")[0], wide.all("g")[12]
    assert len(wide.all("g")) == 24
    assert (night.text, noon.text) == ("00-01: 1 committed, 7 committed and idle", "12-13: 8 committed, 2 hired")
    assert "2 EUR per hour" in page.by_id("devices").text
    assert "$0.6 per hour, reserved, for 1 year, 50% of it paid at the start" in page.by_id("devices").text
    assert "All targets met" in page.all("header")[0].text


def test_assumptions_and_times_keep_source_and_confidence() -> None:
    """Every assumption's source and confidence, and every note behind the times, is on the page."""
    plan = plan_of("modelled")
    page = page_of(plan)
    assumed, timed = page.by_id("assumptions").text, page.by_id("times").text
    assert plan.assumptions
    for one in plan.assumptions:
        assert one.source in assumed
        assert one.confidence in assumed
    for pool in plan.pools:
        for time in pool.times:
            assert time.note in timed
    estimates = sum(one.confidence == "estimate" for one in plan.assumptions)
    marked = [e for e in page.by_id("assumptions").all("span") if e.attributes.get("class") == "badge warn"]
    assert f"{estimates} of them are estimates" in assumed
    assert sum(e.text == "estimate" for e in marked) == estimates


@pytest.mark.parametrize("kind", ["modelled", "measured"])
def test_names_are_text_whatever_they_are(kind: str) -> None:
    """A name that looks like markup makes the same elements as a plain one, and its figures are found under it."""
    plain, document = renamed(plan_of(kind), "plain"), renamed(plan_of(kind), NASTY)
    page = page_of(epd_opt.Plan.load(document))
    assert [e.tag for e in page.all()] == [e.tag for e in page_of(epd_opt.Plan.load(plain)).all()]
    assert "script" not in {e.tag for e in page.all()}
    assert all(value == at(document, pointer) for _, pointer, value, _ in figures(page))
    for part in ("classes", "pools", "devices", "binding", "warnings"):
        assert "<script>alert('x')</script> & \"q\"/~1" in page.by_id(part).text


@pytest.mark.parametrize("kind", ["modelled", "measured", "infeasible", "day"])
def test_the_page_stands_alone(kind: str) -> None:
    """Nothing is fetched or run: no address, script, import or handler, and a policy that forbids them."""
    text = report_html(plan_of(kind).document)
    page = read_page(text)
    addresses = [
        e.attributes[key] for e in page.all() for key in ("src", "href", "action", "data", "poster") if key in e.attributes
    ]
    assert addresses
    assert all(address and address.startswith("#") for address in addresses)
    assert not {e.tag for e in page.all()} & {"script", "link", "iframe", "img", "object", "embed", "base", "form"}
    assert not [key for e in page.all() for key in e.attributes if key.startswith("on") or key == "style"]
    assert not re.search(r"url\(|@import|expression\(", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("kind", ["modelled", "measured", "infeasible", "day"])
def test_the_page_is_accessible(kind: str) -> None:
    """Headings descend in steps, links and labels have targets, pictures have names, tables have captions and scopes."""
    page = page_of(plan_of(kind))
    levels = [int(e.tag[1]) for e in page.all() if re.fullmatch("h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    ids = [e.attributes["id"] for e in page.all() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for one in page.all():
        for key in ("aria-labelledby", "aria-describedby"):
            assert one.attributes.get(key, ids[0]) in ids
        if one.tag == "a":
            assert (one.attributes["href"] or "").removeprefix("#") in ids
        if one.tag == "svg":
            assert one.attributes.get("aria-hidden") == "true" or one.attributes.get("role") == "img"
            assert one.attributes.get("aria-hidden") == "true" or one.all("title")[0].text
        if one.tag == "table":
            assert one.all("caption")[0].text
        if one.tag == "th":
            assert one.attributes["scope"] in ("row", "col")
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_and_marks_have_contrast(scheme: int) -> None:
    """Texts reach 4.5 to 1 on what they stand on, bars and ribbons 3 to 1, light and dark (WCAG 2.2, 1.4.3 and 1.4.11)."""
    blocks = re.findall(r":root \{(.*?)\}", report_html(plan_of("measured").document), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[scheme]))
    texts = [(ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("page", "card")]
    texts += [(kind, f"{kind}-soft") for kind in ("good", "warn", "bad")] + [("quiet", "soft"), ("ink", "soft")]
    texts += [(f"on{i}", f"tint{i}") for i in range(4)]
    marks = [(f"fill{kind}", "card") for kind in ("", "-full", "-good", "-bad")] + [(f"c{i}", "card") for i in range(7)]
    low = [
        (a, b)
        for pairs, least in ((texts, 4.5), (marks, 3.0))
        for a, b in pairs
        if _contrast(colours[a], colours[b]) < least
    ]
    assert not low


def test_an_infeasible_plan_says_why_and_what_helps() -> None:
    """Reasons and mends stand on the page, each mend with what to type, and no costs."""
    plan = plan_of("infeasible")
    page = page_of(plan)
    assert plan.infeasibility.reasons
    for reason in plan.infeasibility.reasons:
        assert reason.text in page.by_id("reasons").text
    document = plan.to_dict()
    mend = {"change": "limits.devices", "to": 18, "text": "18 devices", "usd_per_hour": 41.5}
    document["infeasibility"]["mends"] = [mend]
    page = page_of(epd_opt.Plan.load(document))
    assert "--set 'limits.devices=18'" in page.by_id("mends").text
    assert ("plan", "/infeasibility/mends/0/usd_per_hour", 41.5, "$41.50") in figures(page)
    assert "cost" not in {e.attributes.get("id") for e in page.all()}


def test_a_plan_that_is_not_proved_says_so() -> None:
    """Neither the sentence nor the verdict of an unproved plan claims a proof."""
    document = plan_of("measured").to_dict()
    document |= {"status": "feasible", "cost": {**document["cost"], "bound_usd_per_hour": 1.0, "gap": 0.5}}
    (header,) = page_of(epd_opt.Plan.load(document)).all("header")
    assert "not proved to be the cheapest" in header.text
    assert "Not proved, gap 50%" in header.text
    assert "It is proved" not in header.text


def test_a_missed_target_stands_out() -> None:
    """A class whose prediction is above its target is called missed, by name and in its row."""
    document = plan_of("modelled").to_dict()
    document["classes"]["chat"] |= {"ttft_ms": 1900.0, "slo_met": False}
    page = page_of(epd_opt.Plan.load(document))
    (header,) = page.all("header")
    assert "Targets predicted to be missed: chat" in header.text
    assert "All targets met" not in header.text
    row = next(row for row in page.by_id("classes").all("tr") if row.text.startswith("chat"))
    assert "missed" in row.text
    assert [e for e in row.all("rect") if e.attributes["class"] == "filled missed"]


def test_a_study_adds_its_curve_and_switch_points() -> None:
    """All points of a study are in the table, the curve breaks where there is no plan, and switches are told."""
    plan = plan_of("measured")
    content = study(plan)
    page = page_of(plan, study=content)
    part = page.by_id("study")
    shown = figures(part)
    assert {pointer for _, pointer, _, _ in shown} >= {f"/points/{i}/cost/usd_per_hour" for i in range(3)}
    assert all(document == "study" and value == at(content, pointer) for document, pointer, value, _ in shown)
    assert "from 9.5 on: prefill on big; below: integrated on big" in part.text
    assert "breaks: too few writers" in part.text
    assert "infeasible more than 16 of big" in part.text
    wide = next(e for e in part.all("svg") if e.attributes["class"] == "graph wide")
    assert len([e for e in wide.all("circle") if e.attributes["class"] == "dot colour0"]) == 3
    assert len([e for e in wide.all("circle") if e.attributes["class"] == "dot colour0 kept"]) == 2


def test_a_simulation_adds_attainment() -> None:
    """Attainment with its interval, and times, of a simulation of this plan are those of its report."""
    plan = plan_of("modelled")
    found = epd_opt.simulate(plan, requests=300, seed=1).to_dict()
    part = page_of(plan, simulation=found).by_id("simulation")
    shown = figures(part)
    assert all(document == "simulation" and value == at(found, pointer) for document, pointer, value, _ in shown)
    assert {"/classes/chat/attainment/ttft", "/classes/chat/attainment_ci95/ttft/1"} <= {
        pointer for _, pointer, _, _ in shown
    }
    assert "TTFT 1,500 ms for 95%" in part.text


def test_figures_of_another_instance_or_fleet_are_refused() -> None:
    """A study or simulation that was not made of this plan is an error that says what to do."""
    plan = plan_of("measured")
    other = {**study(plan), "instance_sha256": "0" * 64}
    with pytest.raises(InvalidInput, match=r"study: instance_sha256: made for .* 0{12}, .*epd-opt sensitivity"):
        report_html(plan.document, study=other)
    found = epd_opt.simulate(plan, requests=50).to_dict()
    changed = copy.deepcopy(found)
    next(iter(changed["pools"].values()))["replicas"] += 1
    with pytest.raises(InvalidInput, match=r"simulates another fleet: .*epd-opt simulate"):
        report_html(plan.document, simulation=changed)
    with pytest.raises(InvalidInput, match="not an epd-opt/study/v1 document"):
        report_html(plan.document, study=found)


def test_python_writes_the_same_page_each_time(tmp_path: Path) -> None:
    """`plan.report` writes the page, and the same plan gives the same page."""
    plan = plan_of("measured")
    plan.report(tmp_path / "one.html")
    plan.report(tmp_path / "two.html")
    text = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "two.html").read_text(encoding="utf-8") == report_html(plan.document)


def test_a_study_of_two_inputs_draws_a_line_for_each_value_of_the_second() -> None:
    """A study as `sensitivity` makes it has a line for each factor on the second input, and axes named after the inputs."""
    texts = ("workload.classes.chat.rate_per_s=6:12:3", "workload.classes.album.rate_per_s=x0.5:x1:2")
    found = epd_opt.sensitivity(measured(), vary=[parse_vary(text, measured()) for text in texts])
    part = page_of(plan_of("measured"), study=found.to_dict()).by_id("study")
    wide = next(e for e in part.all("svg") if e.attributes["class"] == "graph wide")
    for i in range(2):
        assert len([e for e in wide.all("circle") if e.attributes["class"] == f"dot colour{i}"]) == 3
    assert {e.text for e in wide.all("text")} >= {"6", "9", "12", "workload.classes.chat.rate_per_s"}
    assert "workload.classes.album.rate_per_s × 0.5" in part.text


def test_goodput_says_what_is_proved_of_it() -> None:
    """The sentence of a plan that serves as much as it can is about the multiple, not about the cost."""
    document = plan_of("measured").to_dict()
    found = {"multiple": 1.5, "requests_per_s": 22.5, "bound_multiple": 1.52, "gap": 0.0133, "points_for": [1.0]}
    for status, said in (("optimal", "no fleet within the limits serves more than 1.52"), ("feasible", "as much as 1.52")):
        (header,) = page_of(epd_opt.Plan.load({**document, "status": status, "goodput": found})).all("header")
        assert f"{said} times the demand" in header.text
        assert "costs less" not in header.text
        assert "1.33%" in header.text


def test_idle_classes_and_free_fleets_have_a_page() -> None:
    """Classes without requests, devices at no price and a plan without pools divide nothing by zero."""
    idle, free, none = measured(), measured(), measured()
    idle["workload"]["classes"][0]["rate_per_s"] = 0
    for device in free["devices"]:
        device["price"] = {"usd_per_hour": 0}
    for one in none["workload"]["classes"]:
        one |= {"rate_per_s": 0, "mean_rate_per_s": 0}
    for instance, cost in ((idle, None), (free, 0.0), (none, 0.0)):
        plan = epd_opt.solve(instance)
        shown = {pointer: value for _, pointer, value, _ in figures(page_of(plan))}
        assert shown["/cost/usd_per_hour"] == (plan.cost.usd_per_hour if cost is None else cost)


def test_a_search_that_stopped_without_a_plan_says_what_to_do() -> None:
    """The page of a stopped search names its option, and shows neither costs nor pools."""
    document = {
        **plan_of("measured").to_dict(),
        "status": "stopped",
        "cost": None,
        "pools": [],
        "classes": {},
        "devices": {},
    }
    page = page_of(epd_opt.Plan.load(document))
    assert "--time-limit" in page.all("header")[0].text
    assert not {"cost", "pools", "reasons"} & {e.attributes.get("id") for e in page.all()}


def test_moves_stand_on_the_page_with_their_figures() -> None:
    """A tornado, marginal values and two break-evens have sections of their own, whose figures are those of the documents;
    a second tornado, and one of another instance, are refused."""
    plan = epd_opt.solve(measured())
    moved = {
        "tornado": epd_opt.tornado(plan, ["devices.big.stock", "devices.big.price.usd_per_hour"]).to_dict(),
        "marginal": epd_opt.marginal(plan).to_dict(),
        "break-even": epd_opt.break_even(measured(), "big", placement="prefill").to_dict(),
        "break-even-2": epd_opt.break_even(measured(), "small", placement="decode").to_dict(),
    }
    text = report_html(plan.document, study=list(moved.values()))
    assert "Which inputs matter" in text
    found = {path: value for value, path in re.findall(r'value="([^"]*)" data-path="([^"]*)"', text)}
    checked = 0
    for name, document in moved.items():
        for path, value in found.items():
            if path.startswith(f"{name}#"):
                held: Any = document
                for step in path.split("#/")[1].split("/"):
                    held = held[int(step)] if isinstance(held, list) else held[step]
                assert json.loads(value) == held
                checked += 1
    assert checked >= 15
    assert moved["break-even"]["text"].split(";")[0] in text
    with pytest.raises(epd_opt.InvalidInput, match="a second"):
        report_html(plan.document, study=[moved["tornado"], moved["tornado"]])
    other = epd_opt.tornado(measured(name="other"), ["devices.big.stock"]).to_dict()
    with pytest.raises(epd_opt.InvalidInput, match="hash"):
        report_html(plan.document, study=other)


def test_a_study_of_a_scenario_stands_on_the_page_of_its_plan() -> None:
    """What was asked of one scenario of an instance goes with the plan as it is in that scenario, and with no other."""
    instance = epd_opt.read(Path(__file__).parents[3] / "instances" / "scenarios.yaml")
    plan = epd_opt.solve(instance)
    one = one_case(instance, "campaign")
    found = epd_opt.sensitivity(one, {"workload.classes.*.rate_per_s": "x1"}, switches=False)
    assert read_page(report_html(plan.in_scenario("campaign").document, study=found.to_dict())).by_id("study")
    with pytest.raises(InvalidInput, match="made for an instance"):
        report_html(plan.in_scenario("usual").document, study=found.to_dict())
