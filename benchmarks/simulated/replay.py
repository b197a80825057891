"""Plans made from public traces, and judged by the very requests that they were made from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

import epd_opt
from epd_opt.fitting.fit import Settings, fit
from epd_opt.fitting.sample import Sample
from epd_opt.fitting.write import instance_text, workload_text
from epd_opt.simulate.arrivals import Arrival
from epd_opt.simulate.traces import Trace, merged
from simulated.shipped import INSTANCES

IMAGES, TEXTS, BUNCHES = "servegen_mm_image_10h_25min", "azure_llm_2023_conv", "azure_llm_2023_code"
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "simulation-replay.png"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan from traces.

    Attributes
    ----------
    stated : bool
        Whether the instance states the burstiness that the fit finds; otherwise it says Poisson.
    classes : int or None
        To fit; as many as the trace tells apart where None.
    """

    title: str
    traces: Sequence[str]
    ttft_ms: float
    itl_ms: float
    stated: bool = True
    classes: int | None = None


CASES = (
    Case(title="images", traces=(IMAGES,), ttft_ms=2500, itl_ms=40),
    Case(title="images and conversation", traces=(IMAGES, TEXTS), ttft_ms=2500, itl_ms=40),
    Case(title="the same", traces=(IMAGES, TEXTS), ttft_ms=1000, itl_ms=30),
    Case(title="the same, burstiness left out", traces=(IMAGES, TEXTS), ttft_ms=1000, itl_ms=30, stated=False),
    Case(title="code", traces=(BUNCHES,), ttft_ms=2000, itl_ms=40),
    Case(title="code, burstiness left out", traces=(BUNCHES,), ttft_ms=2000, itl_ms=40, stated=False),
)
DRAWN = CASES[1]
"""The case of the picture."""


def replay(folder: Path | None) -> Iterator[str]:
    """Fit, plan, replay; Qwen3-VL-30B-A3B on L40S and H100, gap 3 %."""
    missing = [f"{name}.csv.gz" for name in (IMAGES, TEXTS, BUNCHES) if folder is None or not _file(folder, name).is_file()]
    if folder is None or missing:
        where = "no folder is named with --traces" if folder is None else f"{folder} lacks {', '.join(missing)}"
        print(f"skipped: {where}")
        return
    yield (
        "| trace | targets, p95 | plan | classes | TTFT p95 ms, planned and simulated | ITL p95 ms, planned and simulated "
        "| least share that keeps a target | its own draws | met |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    notes: list[str] = []
    for case in CASES:
        sent = requests(folder, case.traces)
        plan = planned(case, sent)
        found = epd_opt.simulate(plan, trace=sent)
        own = epd_opt.simulate(plan, requests=len(sent))
        cost = "" if plan.cost is None else f"{plan.cost.usd_per_hour:,.2f}"
        yield (
            f"| {case.title} | {case.ttft_ms / 1e3:g} s, {case.itl_ms:g} ms | ${cost}/h | {len(plan.classes)} "
            f"| {_span(r.ttft_ms for r in plan.classes.values())}, {_span(o.ttft_ms.p95 for o in found.classes.values())} "
            f"| {_span(r.itl_ms for r in plan.classes.values())}, {_span(o.itl_ms.p95 for o in found.classes.values())} "
            f"| {_least(found):.2%} | {_least(own):.2%} | {'yes' if found.target_met else '**no**'} |"
        )
        notes += [f"{case.title}: {note}" for note in found.notes]
        if case is DRAWN:
            draw(sent, plan, found, own)
    if notes:
        yield ""
        yield "What the report says where a target is missed:"
        yield ""
        yield from (f"- {note}" for note in notes)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.csv.gz"


def requests(folder: Path, names: Sequence[str]) -> list[Arrival]:
    """Traces laid over one another."""
    return list(merged([Trace(source=_file(folder, name)) for name in names]))


def planned(case: Case, sent: Sequence[Arrival]) -> epd_opt.Plan:
    """The plan for the classes of a trace, the other inputs from a shipped instance, as `fit-workload --instance` does."""
    settings = Settings(classes=case.classes)
    slo = {"ttft_ms": case.ttft_ms, "itl_ms": case.itl_ms, "percentile": 95}
    workload = workload_text(fit(Sample.of(sent), settings), settings, slo, list(case.traces))
    shipped = INSTANCES / "text-and-images.yaml"
    document: dict[str, Any] = YAML(typ="safe").load(
        instance_text(shipped.read_text(encoding="utf-8"), str(shipped), workload)
    )
    document["solver"] = {"gap": 0.03, "threads": 1}
    if not case.stated:
        for one in document["workload"]["classes"]:
            one["interarrival_scv"] = 1
    return epd_opt.solve(document)


def _span(values: Any) -> str:
    known = sorted(value for value in values if value is not None)
    if not known:
        return "-"
    low, high = f"{known[0]:,.0f}", f"{known[-1]:,.0f}"
    return low if low == high else f"{low} to {high}"


def _least(found: epd_opt.Simulation) -> float:
    shares = [(o.attainment.ttft, o.attainment.itl) for o in found.classes.values()]
    return min(share for share in itertools.chain(*shares) if share is not None)


def draw(sent: Sequence[Arrival], plan: epd_opt.Plan, found: epd_opt.Simulation, own: epd_opt.Simulation) -> None:
    """The trace over time, and first tokens of the trace beside those of the plan's own draws."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    edges = np.arange(0.0, sent[-1].time_s, 10.0)
    for name, kind, colour in (("with images", True, "#D55E00"), ("text alone", False, "#0072B2")):
        times = [one.time_s for one in sent if bool(one.image_count) is kind]
        left.plot(edges[:-1], np.histogram(times, edges)[0] / 10.0, color=colour, lw=1, label=name)
    left.set(xlabel="time, s", ylabel="requests/s, counts of 10 s", ylim=(0, None))
    for name, simulation, colour in (("the trace", found, "#009E73"), ("its classes, drawn", own, "#CC79A7")):
        ttft = np.sort(np.concatenate([times.ttft for run in simulation.runs for times in run.times]))
        right.plot(ttft, np.arange(1, len(ttft) + 1) / len(ttft), color=colour, lw=1.5, label=name)
    right.axvline(DRAWN.ttft_ms / 1e3, color="#222222", lw=1, ls="--", label="target, for 95 %")
    said: Mapping[str, Any] = plan.classes
    right.axvspan(
        *(pick(one.ttft_ms for one in said.values()) / 1e3 for pick in (min, max)), alpha=0.15, color="#222222", lw=0
    )
    right.set(xlabel="time to first token, s (grey: p95 as planned)", ylabel="share of requests", xscale="log")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=7)
    figure.savefig(PICTURE, dpi=120)
    plt.close(figure)
