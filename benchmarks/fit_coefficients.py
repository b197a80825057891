"""Fit the coefficients of Hopper and Blackwell on public serving runs, and say how well they predict what they have not
seen.

    python benchmarks/fit_coefficients.py RUNS.csv            tables on standard output
    python benchmarks/fit_coefficients.py RUNS.csv --write    and into the coefficient cards and docs/accuracy.md

RUNS.csv has the columns of `epd-opt predict`; rows count where `quality` is ok (or there is no such column), `mode` is
aggregated and both times are given. Needs scipy (`pip install epd-opt[test]`).

Times are linear in overheads and in the inverse of most shares, so each run is reduced once, by the stage functions of
the planner themselves, to what one unit of each coefficient costs; a fit is then a few matrix products. Residuals are
logarithms of predicted over measured, intervals between tokens counting three times as much as times to first token,
under a Cauchy loss (runs with speculative decoding or wrong labels are not flagged); a weak log-normal prior keeps what
the runs do not determine near its usual value.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from epd_models import catalog
from epd_models.device import Coefficients
from epd_models.measurements import Measurement, read_measurements
from epd_models.serving import QUEUE_SHARE, Run, Unpredictable, in_flight, run_of
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
CARDS = ROOT / "models/epd_models/catalog/coefficients"
PAGE = ROOT / "docs/accuracy.md"
ENGINES = ("vllm", "sglang", "trtllm")
HELD_FIXED = {"attention_share": 0.6}
ENCODER = {"hopper": (0.68, 0.45, 3), "blackwell": (0.6, 0.36, 6)}
"""encode_share and encode_attention_share from public kernels of vision transformers, image_overhead_ms from public forward
passes on one GB200 (an estimate on Hopper)."""
SPECULATIVE = ("R1",)
"""Models whose public runs mostly use multi-token prediction without saying so: evaluated, not fitted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Usual value of a coefficient, its bounds and its spread (standard deviation of the logarithm)."""

    usual: float
    least: float
    most: float
    spread: float


PRIORS: Mapping[str, Prior] = {
    "bandwidth_share": Prior(usual=0.87, least=0.6, most=0.95, spread=0.06),
    "expert_bandwidth_share": Prior(usual=0.75, least=0.3, most=0.92, spread=0.15),
    "kv_bandwidth_share": Prior(usual=0.7, least=0.2, most=0.93, spread=0.3),
    "prefill_share": Prior(usual=0.53, least=0.2, most=0.8, spread=0.1),
    "decode_share": Prior(usual=0.5, least=0.12, most=0.85, spread=0.5),
    "expert_share": Prior(usual=0.25, least=0.05, most=0.75, spread=0.6),
    "narrow_share": Prior(usual=0.9, least=0.65, most=1.0, spread=0.17),
    "link_share": Prior(usual=0.7, least=0.15, most=0.95, spread=0.15),
    "expert_half_width": Prior(usual=60.0, least=0.5, most=1000.0, spread=0.8),
    "activation_passes": Prior(usual=7.0, least=2.0, most=20.0, spread=0.4),
    "step_overhead_s": Prior(usual=5e-4, least=1e-6, most=6e-3, spread=0.8),
    "layer_overhead_s": Prior(usual=35e-6, least=1e-6, most=2e-4, spread=0.3),
    "narrow_layer_overhead_s": Prior(usual=10e-6, least=1e-7, most=1e-4, spread=0.8),
    "latent_layer_overhead_s": Prior(usual=20e-6, least=1e-7, most=2e-4, spread=0.8),
    "expert_layer_overhead_s": Prior(usual=15e-6, least=1e-6, most=3e-4, spread=0.7),
    "sequence_overhead_s": Prior(usual=10e-6, least=1e-7, most=1e-4, spread=0.8),
    "collective_latency_s": Prior(usual=6e-6, least=5e-7, most=5e-5, spread=0.3),
    "prompt_overhead_s": Prior(usual=12e-3, least=1e-3, most=25e-3, spread=0.6),
    "opening_share": Prior(usual=0.08, least=1e-3, most=0.7, spread=0.8),
}
SIMPLE = (
    "bandwidth_share",
    "prefill_share",
    "decode_share",
    "step_overhead_s",
    "layer_overhead_s",
    "collective_latency_s",
    "opening_share",
)
"""The baseline: six coefficients per SKU and engine and the opening burst, as a quick fit would have them."""
_SILENT = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Runs reduced to what a unit of each coefficient costs; arrays of shape (runs,), or (coefficients, runs)."""

    step: Floats
    busy: Floats
    own: Floats
    attention: Floats
    dense_doublings: Floats
    expert_doublings: Floats
    slice_width: Floats
    batch: Floats
    clients: Floats
    output: Floats
    request_overhead: Floats
    ttft: Floats
    itl: Floats

    def at(self, chosen: NDArray[np.bool_]) -> Features:
        """Some of the runs."""
        return Features(**{f.name: getattr(self, f.name)[..., chosen] for f in dataclasses.fields(self)})


LINEAR = tuple(name for name in PRIORS if name not in ("narrow_share", "expert_half_width", "opening_share"))
_KV = LINEAR.index("kv_bandwidth_share")


def silent(worker: Worker, **loud: float) -> Worker:
    """The worker with every coefficient of no effect except the ones given."""
    values = {
        field.name: (_SILENT if field.name.endswith("_share") else 0.0)
        for field in dataclasses.fields(Coefficients)
        if field.name != "provenance"
    }
    values |= {"narrow_share": 1.0} | loud
    provenance = worker.coefficients.provenance
    device = dataclasses.replace(worker.device, coefficients={"default": Coefficients(**values, provenance=provenance)})
    return dataclasses.replace(worker, device=device)


def reduce_run(run: Run, row: Measurement) -> dict[str, float | list[float]]:
    """One run's costs per unit of each coefficient."""
    worker, clients = run.decode.worker, run.concurrency / run.decode.replicas
    prompt, context = np.array([run.prompt_tokens]), run.prompt_tokens + run.output_tokens / 2.0
    batch = in_flight(worker, clients=clients, prompt_tokens=run.prompt_tokens, output_tokens=run.output_tokens)
    lane = batch / worker.cut.pipeline

    def costs(**loud: float) -> tuple[float, float, float]:
        loud_worker = silent(worker, **loud)
        prefill = prefill_time(loud_worker)
        decoding = decode_step(loud_worker, sequences=lane)
        step = decoding.seconds(lane, context) / decoding.tokens
        own = float(prefill.own_s(prompt)[0]) + prefill.per_chunk
        return step, float(prefill.busy_s(prompt)[0]), own

    columns = [costs(**{name: 1.0}) for name in LINEAR]
    attention = costs(**HELD_FIXED)
    experts = worker.model.experts
    doublings = max(0.0, math.log2(worker.peak / worker.device.peaks["bf16"]))
    ranks = worker.cut.tensor * worker.cut.attention_data
    return {
        "step": [column[0] for column in columns],
        "busy": [column[1] for column in columns],
        "own": [column[2] for column in columns],
        "attention": list(attention),
        "dense_doublings": 0.0 if worker.wide_dense else doublings,
        "expert_doublings": doublings,
        "slice_width": experts.dim * worker.cut.expert / ranks if experts is not None else 1.0,
        "batch": batch,
        "clients": clients,
        "output": run.output_tokens,
        "request_overhead": worker.engine.request_overhead_s,
        "ttft": row.ttft_s or math.nan,
        "itl": row.itl_s or math.nan,
    }


def times(values: Mapping[str, float], runs: Features) -> tuple[Floats, Floats]:
    """Interval between tokens and time to first token of each run, as :mod:`epd_models.serving` computes them."""
    ones = np.ones_like(runs.batch)
    rows = []
    for name in LINEAR:
        unit = ones / values[name] if name.endswith("_share") else ones * values[name]
        if name in ("prefill_share", "decode_share"):
            unit = unit * values["narrow_share"] ** -runs.dense_doublings
        elif name == "expert_share":
            unit = unit * values["narrow_share"] ** -runs.expert_doublings
        elif name == "expert_bandwidth_share":
            unit = unit * (1.0 + values["expert_half_width"] / runs.slice_width)
        rows.append(unit)
    units = np.array(rows)
    attending = np.maximum(runs.step[_KV] * units[_KV], runs.attention[0])
    others = np.delete(np.arange(len(LINEAR)), _KV)
    step = np.sum(runs.step[others] * units[others], axis=0) + attending
    busy = np.sum(runs.busy * units, axis=0) + runs.attention[1]
    own = np.sum(runs.own * units, axis=0) + runs.attention[2] + runs.request_overhead
    interval = step + (1.0 - values["opening_share"]) * runs.batch * busy / runs.output
    think, service = runs.output * interval, busy + step
    slack = think - runs.batch * service
    wait = np.maximum(0.0, (np.sqrt(slack**2 + 4.0 * service * think) - slack) / 2.0 - service)
    room = (runs.clients - runs.batch) / runs.batch * (think + service)
    return interval, own + QUEUE_SHARE * wait + values["opening_share"] * runs.batch * busy + room


PRIOR_WEIGHT = 1.0
"""Of the prior against the runs; chosen on held-out groups."""


def fit(
    runs: Features, *, centre: Mapping[str, float] | None = None, names: Sequence[str] = tuple(PRIORS)
) -> dict[str, float]:
    """Coefficients of one group of runs.

    Parameters
    ----------
    centre : mapping or None
        Where the prior is centred, and the fit starts; the usual values unless given.
    names : sequence of str
        Coefficients to fit; :data:`SIMPLE` ties the others to them or silences them.
    """
    simple = tuple(names) == SIMPLE
    centre = {name: prior.usual for name, prior in PRIORS.items()} if centre is None else centre
    low, high = (np.log([getattr(PRIORS[name], side) for name in names]) for side in ("least", "most"))
    usual = np.clip(np.log([centre[name] for name in names]), low + 1e-6, high - 1e-6)
    spread = np.array([PRIORS[name].spread for name in names])
    weight = 0.005 * PRIOR_WEIGHT * math.sqrt(len(runs.itl))

    def values(x: Floats) -> dict[str, float]:
        found = dict(centre) | dict(zip(names, np.exp(x), strict=True))
        if simple:
            found |= dict.fromkeys(("expert_bandwidth_share", "kv_bandwidth_share"), found["bandwidth_share"])
            found |= {"expert_share": found["prefill_share"], "narrow_share": 1.0, "expert_half_width": 0.0}
            found |= dict.fromkeys(("narrow_layer_overhead_s", "latent_layer_overhead_s", "sequence_overhead_s"), 0.0)
            found |= {"expert_layer_overhead_s": 0.0, "activation_passes": 0.0}
        return found

    def residuals(x: Floats) -> Floats:
        interval, first = times(values(x), runs)
        errors = np.concatenate([np.log(interval / runs.itl), 0.3 * np.log(first / runs.ttft)])
        bounded = np.sign(errors) * 0.1 * np.sqrt(np.log1p((errors / 0.1) ** 2))
        return np.concatenate([bounded, weight * (x - usual) / spread])

    solved = least_squares(residuals, usual, bounds=(low, high), max_nfev=60, ftol=1e-5)
    return values(solved.x)


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The rows that count, with their reduced runs and the labels they are grouped by."""

    rows: Sequence[Measurement]
    runs: Features
    family: NDArray[np.str_]
    sku: NDArray[np.str_]
    model: NDArray[np.str_]
    group: NDArray[np.str_]
    dense: NDArray[np.bool_]
    fitted: NDArray[np.bool_]
    unread: Mapping[str, int]


def load(path: Path) -> Data:
    """Read and reduce the rows of a file."""
    kept, reduced, labels, unread = [], [], [], dict[str, int]()
    for row in read_measurements(path.read_text(encoding="utf-8"), file=path.name):
        good = row.text("quality") in ("", "ok") and row.text("mode") in ("", "agg")
        if not good or row.ttft_s is None or row.itl_s is None:
            continue
        try:
            run, _ = run_of(row)
        except Unpredictable as error:
            unread[str(error)] = unread.get(str(error), 0) + 1
            continue
        worker = run.decode.worker
        card = catalog.device_card(worker.device.sku)["coefficients"]
        if card not in ("hopper", "blackwell"):
            unread[f"{worker.device.sku} is neither Hopper nor Blackwell"] = 1
            continue
        kept.append(row)
        reduced.append(reduce_run(run, row))
        engine = worker.engine.name
        labels.append((f"{card} {engine}", f"{worker.device.sku} {engine}", worker.model.name, worker.model.experts is None))
    runs = Features(**{name: np.array([one[name] for one in reduced]).T for name in reduced[0]})
    keys = ("model", "gpu", "engine", "isl", "osl")
    return Data(
        rows=kept,
        runs=runs,
        family=np.array([label[0] for label in labels]),
        sku=np.array([label[1] for label in labels]),
        model=np.array([label[2] for label in labels]),
        group=np.array(["|".join(row.text(key) for key in keys) for row in kept]),
        dense=np.array([label[3] for label in labels]),
        fitted=np.array([not any(mark in row.text("model") for mark in SPECULATIVE) for row in kept]),
        unread=unread,
    )


Predicted = tuple[Floats, Floats]


def fit_families(data: Data, train: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """Coefficients of each architecture and engine, drawn towards those that fit all runs at once."""
    train = train & data.fitted
    pooled = fit(data.runs.at(train))
    fits = {}
    for family in sorted(set(data.family)):
        mine = train & (data.family == family)
        fits[family] = fit(data.runs.at(mine), centre=pooled) if mine.sum() >= 8 else pooled
    return fits


def folds(data: Data, count: int = 5) -> NDArray[np.int_]:
    """A fold for each run, whole (model, GPU, engine, isl, osl) groups together."""
    groups = sorted(set(data.group))
    fold = dict(zip(groups, np.random.default_rng(0).permutation(len(groups)) % count, strict=True))
    return np.array([fold[group] for group in data.group])


def by_family(data: Data, fits: Mapping[str, Mapping[str, float]], chosen: NDArray[np.bool_], into: Predicted) -> None:
    """Fill in the predictions of some runs."""
    for family, values in fits.items():
        mine = chosen & (data.family == family)
        if mine.any():
            into[0][mine], into[1][mine] = times(values, data.runs.at(mine))


def held_out(data: Data) -> Predicted:
    """Predictions of each run from a fit on the other folds."""
    found, fold = _empty(data), folds(data)
    for k in range(fold.max() + 1):
        by_family(data, fit_families(data, fold != k), fold == k, found)
    return found


def without_model(data: Data) -> Predicted:
    """Predictions of each run from a fit that has never seen its model."""
    found = _empty(data)
    for model in sorted(set(data.model)):
        by_family(data, fit_families(data, data.model != model), data.model == model, found)
    return found


def baseline(data: Data, by: NDArray[np.str_]) -> Predicted:
    """Predictions of held-out groups by a few coefficients for each label."""
    found, fold = _empty(data), folds(data)
    for label in sorted(set(by)):
        for k in range(fold.max() + 1):
            train, test = (by == label) & data.fitted & (fold != k), (by == label) & (fold == k)
            if test.any() and train.sum() >= 8:
                found[0][test], found[1][test] = times(fit(data.runs.at(train), names=SIMPLE), data.runs.at(test))
    return found


def _empty(data: Data) -> Predicted:
    return np.full(len(data.rows), math.nan), np.full(len(data.rows), math.nan)


def errors(data: Data, found: Predicted, chosen: NDArray[np.bool_]) -> str:
    """Cells of a table: runs, median and mean absolute error of the interval, median of the time to first token."""
    chosen = chosen & np.isfinite(found[0])
    if not chosen.any():
        return "| 0 | - | - | - |"
    interval = np.abs(found[0][chosen] / data.runs.itl[chosen] - 1.0) * 100.0
    first = np.abs(found[1][chosen] / data.runs.ttft[chosen] - 1.0) * 100.0
    return f"| {chosen.sum()} | {np.median(interval):.1f} | {interval.mean():.1f} | {np.median(first):.1f} |"


def report(data: Data, fits: Mapping[str, Mapping[str, float]]) -> tuple[str, Predicted]:
    """The tables of docs/accuracy.md, and the predictions of held-out groups."""
    everything = np.ones(len(data.rows), dtype=bool)
    engine = np.array([family.split()[1] for family in data.family])
    held, seen = held_out(data), _empty(data)
    by_family(data, fits, everything, seen)
    per_model = np.array([f"{sku} {model}" for sku, model in zip(data.sku, data.model, strict=True)])
    head = "| what is predicted | runs | TPOT median % | TPOT mean % | TTFT median % |\n|---|---|---|---|---|\n"
    lines: list[tuple[str, Predicted, NDArray[np.bool_]]] = [
        ("**groups left out**, all runs", held, everything),
        ("groups left out, without DeepSeek-R1", held, data.fitted),
        ("groups left out, dense models on vLLM and SGLang", held, data.dense & (engine != "trtllm")),
        ("groups left out, mixtures of experts", held, ~data.dense),
        ("**model left out** entirely", without_model(data), everything),
        ("runs of the fit itself", seen, everything),
        (
            "baseline: six coefficients per SKU and engine, groups left out",
            baseline(data, data.sku),
            everything,
        ),
        (
            "baseline: six coefficients per SKU, engine and model, groups left out",
            baseline(data, per_model),
            everything,
        ),
    ]
    summary = head + "\n".join(f"| {name} {errors(data, found, chosen)}" for name, found, chosen in lines)
    detail = "| model, SKU, engine (groups left out) | runs | TPOT median % | TPOT mean % | TTFT median % | TPOT bias % |\n"
    detail += "|---|---|---|---|---|---|\n"
    names = np.array([row.text("model").rsplit("/", 1)[-1] for row in data.rows])
    for name, sku in sorted(set(zip(names, data.sku, strict=True))):
        chosen = (names == name) & (data.sku == sku) & np.isfinite(held[0])
        if chosen.any():
            bias = 100.0 * (np.median(held[0][chosen] / data.runs.itl[chosen]) - 1.0)
            detail += f"| {name}, {sku} {errors(data, held, chosen)} {bias:+.0f} |\n"
    unread = "\n".join(f"- {count} rows: {reason}" for reason, count in sorted(data.unread.items()))
    text = f"{summary}\n\n{detail}\nLeft out because no worker could be built from them:\n\n{unread or '- none'}\n"
    return text, held


def card_text(family: str, fits: Mapping[str, Mapping[str, float]], data: Data, held: Predicted) -> str:
    """A coefficients card."""
    today = datetime.date.today().isoformat()
    matrices, attention, overhead = ENCODER[family]
    lines = [
        f"name: {family}",
        "source: >-",
        "  language model: fitted by benchmarks/fit_coefficients.py on public runs, silicon_sample.csv in the Apache-2.0",
        "  package aiconfigurator (aggregated, closed loop); encoder share: public ViT forward passes and attention kernels",
        "  (vllm-project/vllm pull 38065; aiconfigurator encoder_attention tables @095f58a)",
        "confidence: measured",
        f'date: "{today}"',
        "note: image_overhead_ms and attention_share are set by hand",
        "default:",
        f"  encode_share: {matrices}",
        f"  encode_attention_share: {attention}",
        f"  image_overhead_ms: {overhead}",
        f"  attention_share: {HELD_FIXED['attention_share']}",
        *_figures(fits[f"{family} vllm"]),
        "  source: what runs of vLLM on this architecture gave, for engines without runs of their own",
        "  confidence: recalled",
    ]
    for engine in ENGINES:
        label = f"{family} {engine}"
        mine = (data.family == label) & data.fitted
        models = ", ".join(sorted(set(data.model[mine])))
        off = np.abs(held[0][mine] / data.runs.itl[mine] - 1.0) * 100.0
        median, most = np.percentile(off[np.isfinite(off)], [50, 90])
        lines += [
            f"{engine}:",
            *_figures(fits[label]),
            "  note: >-",
            f"    {mine.sum()} runs of {models};",
            f"    interval of held-out groups: median error {median:.1f} %, 90th percentile {most:.0f} %",
            "  fitted_error:",
            f"    itl: {{median: {median / 100.0:.3g}, p90: {most / 100.0:.3g}, points: {mine.sum()}}}",
        ]
    return "\n".join(lines) + "\n"


def _figures(values: Mapping[str, float]) -> list[str]:
    lines = []
    for name in PRIORS:
        value, key = values[name], name
        if name.endswith("_s") and not name.endswith("_share"):
            milli = name in ("step_overhead_s", "prompt_overhead_s")
            key = name.removesuffix("_s") + ("_ms" if milli else "_us")
            value *= 1e3 if milli else 1e6
        lines.append(f"  {key}: {float(f'{value:.3g}'):g}")
    return lines


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Fit, report and, where asked to, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("runs", type=Path, help="measured runs, a CSV file")
    parser.add_argument("--write", action="store_true", help="write the coefficient cards and docs/accuracy.md")
    options = parser.parse_args(arguments)
    data = load(options.runs)
    fits = fit_families(data, data.fitted)
    text, held = report(data, fits)
    say(text)
    if options.write:
        for family in ("hopper", "blackwell"):
            (CARDS / f"{family}.yaml").write_text(card_text(family, fits, data, held), encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- fitted tables -->\n")
        after = rest.partition("<!-- end of fitted tables -->\n")[2]
        PAGE.write_text(f"{before}<!-- fitted tables -->\n{text}<!-- end of fitted tables -->\n{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
