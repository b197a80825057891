"""The whole page: one file, no network, nothing to run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from epd_opt.document import Cost, HoursResult, PlanDocument
from epd_opt.report.classes import classes
from epd_opt.report.day import day, day_classes, day_pools
from epd_opt.report.evidence import searched, simulated
from epd_opt.report.failure import mends, reasons
from epd_opt.report.fleet import binding, cost_breakdown, devices, flows, pools, settings
from epd_opt.report.markup import Child, Markup, Section, badge, element, joined, paragraph
from epd_opt.report.moves import break_even_section, marginal_section, tornado_section
from epd_opt.report.origins import assumptions, provenance, times, warnings
from epd_opt.report.study import study_section
from epd_opt.report.summary import summary
from epd_opt.report.tariffs import tariffs
from epd_opt.sensitivity.document import BreakEvenDocument, StudyDocument
from epd_opt.sensitivity.moves_document import MarginalDocument, TornadoDocument
from epd_opt.simulate.document import SimulationDocument

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Studies:
    """What was solved beside the plan."""

    study: StudyDocument | None = None
    tornado: TornadoDocument | None = None
    marginal: MarginalDocument | None = None
    break_evens: tuple[BreakEvenDocument, ...] = ()


def page(document: PlanDocument, *, studies: Studies, simulation: SimulationDocument | None) -> str:
    """The page of a plan, or of why there is none."""
    sections = list(_sections(document, studies, simulation))
    style = files("epd_opt.report").joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("title", f"{document.instance}: fleet plan"),
        element("style", Markup(style)),
    )
    body = element(
        "body",
        element("a", "Skip to the plan", href="#main", class_="skip"),
        element("header", paragraph("Fleet plan", class_="eyebrow"), element("h1", document.instance), *_opening(document)),
        _contents(sections),
        element("main", [section.markup() for section in sections], id="main"),
        element("footer", paragraph(f"Made by epd-opt {document.provenance.epd_opt} from one plan document.")),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _opening(document: PlanDocument) -> Iterator[Markup]:
    if document.cost is not None:
        yield summary(document, document.cost)
    elif document.status == "infeasible":
        yield paragraph("No fleet of this model serves these requests within their targets and limits.", class_="lead")
        yield paragraph(badge("Infeasible", "bad"), class_="verdicts")
    else:
        text = (
            "The search stopped before it had a plan: allow more time with --time-limit, or offer fewer devices and degrees."
        )
        yield paragraph(text, class_="lead")
        yield paragraph(badge("Stopped without a plan", "warn"), class_="verdicts")


def _sections(document: PlanDocument, studies: Studies, simulation: SimulationDocument | None) -> Iterator[Section]:
    if document.warnings:
        yield Section(anchor="warnings", title="Warnings", short="Warnings", body=warnings(document))
    if document.infeasibility is not None:
        yield Section(anchor="reasons", title="Why nothing fits", short="Reasons", body=reasons(document.infeasibility))
        yield Section(anchor="mends", title="What would change that", short="Mends", body=mends(document.infeasibility))
    if document.cost is not None:
        yield from _fleet(document, document.cost)
    yield from _moved(studies)
    if document.simulated is not None:
        title = "Fleets judged by simulation"
        yield Section(anchor="searched", title=title, short="Judged", body=searched(document.simulated))
    if simulation is not None:
        title = "What simulated requests got"
        yield Section(anchor="simulation", title=title, short="Simulation", body=simulated(document, simulation))
    if document.cost is not None:
        yield Section(anchor="times", title="Where the times come from", short="Times", body=times(document))
    yield Section(anchor="assumptions", title="Assumptions", short="Assumptions", body=assumptions(document))
    yield Section(anchor="provenance", title="Provenance", short="Provenance", body=provenance(document))


def _fleet(document: PlanDocument, cost: Cost) -> Iterator[Section]:
    yield Section(anchor="cost", title="What it costs", short="Cost", body=cost_breakdown(document, cost))
    if document.hours is not None:
        yield from _day(document, document.hours, cost)
        return
    yield Section(anchor="flows", title="Who goes where", short="Flows", body=flows(document))
    yield Section(anchor="classes", title="What each class gets", short="Classes", body=classes(document))
    yield Section(anchor="pools", title="Pools", short="Pools", body=pools(document))
    yield from _paid(document, cost)
    yield Section(anchor="binding", title="What binds", short="What binds", body=binding(document))
    how = settings(document)
    if how is not None:
        yield Section(anchor="settings", title="How to run it", short="Settings", body=how)


def _day(document: PlanDocument, hours: HoursResult, cost: Cost) -> Iterator[Section]:
    """A plan by the hour: what is about one workload stands on the pages of its hours."""
    yield Section(anchor="hours", title="The hours of the day", short="Hours", body=day(document, hours))
    yield Section(anchor="classes", title="What each class gets", short="Classes", body=day_classes(document))
    yield Section(anchor="pools", title="Pools", short="Pools", body=day_pools(document))
    yield from _paid(document, cost)


def _paid(document: PlanDocument, cost: Cost) -> Iterator[Section]:
    yield Section(anchor="devices", title="Devices", short="Devices", body=devices(document, cost))
    yield Section(anchor="tariffs", title="Ways to pay", short="Tariffs", body=tariffs(document))


def _moved(studies: Studies) -> Iterator[Section]:
    if studies.study is not None:
        yield Section(anchor="study", title="If the inputs move", short="Sensitivity", body=study_section(studies.study))
    if studies.break_evens:
        body = break_even_section(studies.break_evens)
        yield Section(anchor="break-even", title="From which price on it pays", short="Break-even", body=body)
    if studies.tornado is not None:
        body = tornado_section(studies.tornado)
        yield Section(anchor="tornado", title="Which inputs matter", short="Tornado", body=body)
    if studies.marginal is not None:
        body = marginal_section(studies.marginal)
        yield Section(anchor="marginal", title="What one step is worth", short="Marginal", body=body)


def _contents(sections: list[Section]) -> Markup:
    links: list[Child] = [element("li", element("a", one.short, href=f"#{one.anchor}")) for one in sections]
    return element("nav", joined(element("ul", links)), aria_label="Contents")
