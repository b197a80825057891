"""Fit the coefficients of Hopper and Blackwell on public serving runs, and say how well they predict what they have not
seen.

    python benchmarks/fit_coefficients.py RUNS.csv            tables on standard output
    python benchmarks/fit_coefficients.py RUNS.csv --page     and into docs/accuracy.md, with its picture
    python benchmarks/fit_coefficients.py RUNS.csv --write    and into the coefficient cards too

RUNS.csv has the columns of `epd-opt predict`; rows count where `quality` is ok (or there is no such column), `mode` is
aggregated and both times are given. The fit itself is that of `epd-opt calibrate` (:mod:`epd_models.calibrate`), with the
prior growing with the number of runs and centred on what fits all of them.
"""

from __future__ import annotations

import argparse
import datetime
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from epd_models import catalog
from epd_models.calibrate.card import as_card
from epd_models.calibrate.fitting import USUAL, fit
from epd_models.calibrate.reduced import Reduced, reduce_runs, times
from epd_models.measurements import Measurement, read_measurements
from epd_models.plausible import contradiction
from epd_models.serving import Unpredictable, predict, run_of

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
CARDS = ROOT / "models/epd_models/catalog/coefficients"
PAGE = ROOT / "docs/accuracy.md"
PICTURE = ROOT / "docs/images/predicted-against-measured.png"
ENGINES = ("vllm", "sglang", "trtllm")
SPECULATIVE = ("R1",)
"""Models whose public runs mostly use multi-token prediction without saying so: evaluated, not fitted on."""
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
PRIOR_STRENGTH = 0.005
"""Of the prior against the runs, times the root of their number; chosen on held-out groups."""


def fitted(runs: Reduced, centre: Mapping[str, float] = USUAL) -> dict[str, float]:
    """All coefficients of one group of runs, drawn towards ``centre``."""
    return fit(runs, centre=centre, strength=PRIOR_STRENGTH * math.sqrt(len(runs)))


def fitted_simply(runs: Reduced) -> dict[str, float]:
    """The baseline's coefficients; the others follow them or are silent."""
    return fit(runs, names=SIMPLE, strength=PRIOR_STRENGTH * math.sqrt(len(runs)), tie=_tied)


def _tied(values: Mapping[str, float]) -> dict[str, float]:
    silent = ("narrow_layer_overhead_s", "latent_layer_overhead_s", "expert_layer_overhead_s", "sequence_overhead_s")
    return {
        **values,
        "expert_bandwidth_share": values["bandwidth_share"],
        "kv_bandwidth_share": values["bandwidth_share"],
        "expert_share": values["prefill_share"],
        "narrow_share": 1.0,
        "expert_half_width": 0.0,
        "activation_passes": 0.0,
        **dict.fromkeys(silent, 0.0),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The rows that count, with their reduced runs and the labels they are grouped by."""

    rows: Sequence[Measurement]
    runs: Reduced
    family: NDArray[np.str_]
    sku: NDArray[np.str_]
    model: NDArray[np.str_]
    group: NDArray[np.str_]
    dense: NDArray[np.bool_]
    fitted: NDArray[np.bool_]
    contradiction: NDArray[np.str_]
    unread: Mapping[str, int]


def load(path: Path) -> Data:
    """Read and reduce the rows of a file."""
    kept, runs, labels, unread = [], [], [], dict[str, int]()
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
        runs.append((run, row))
        engine = worker.engine.name
        labels.append((f"{card} {engine}", f"{worker.device.sku} {engine}", worker.model.name, worker.model.experts is None))
    keys = ("model", "gpu", "engine", "isl", "osl")
    return Data(
        rows=kept,
        runs=reduce_runs(runs),
        family=np.array([label[0] for label in labels]),
        sku=np.array([label[1] for label in labels]),
        model=np.array([label[2] for label in labels]),
        group=np.array(["|".join(row.text(key) for key in keys) for row in kept]),
        dense=np.array([label[3] for label in labels]),
        fitted=np.array([not any(mark in row.text("model") for mark in SPECULATIVE) for row in kept]),
        contradiction=np.array([contradiction(run, ttft_s=row.ttft_s, itl_s=row.itl_s) for run, row in runs]),
        unread=unread,
    )


Predicted = tuple[Floats, Floats]


def fit_families(data: Data, train: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """Coefficients of each architecture and engine, drawn towards those that fit all runs at once."""
    train = train & data.fitted
    pooled = fitted(data.runs.at(train))
    fits = {}
    for family in sorted(set(data.family)):
        mine = train & (data.family == family)
        fits[family] = fitted(data.runs.at(mine), pooled) if mine.sum() >= 8 else pooled
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
                found[0][test], found[1][test] = times(fitted_simply(data.runs.at(train)), data.runs.at(test))
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
    odd = data.contradiction != ""
    held, seen = held_out(data), _empty(data)
    by_family(data, fits, everything, seen)
    per_model = np.array([f"{sku} {model}" for sku, model in zip(data.sku, data.model, strict=True)])
    head = "| what is predicted | runs | TPOT median % | TPOT mean % | TTFT median % |\n|---|---|---|---|---|\n"
    lines: list[tuple[str, Predicted, NDArray[np.bool_]]] = [
        ("**groups left out**, all runs", held, everything),
        ("groups left out, without DeepSeek-R1", held, data.fitted),
        (f"groups left out, without the {odd.sum()} rows that contradict themselves", held, ~odd),
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


def apart(path: Path) -> str:
    """Errors of the shipped coefficients on runs of prefill and decode workers apart, which no fit has seen."""
    groups: dict[str, list[tuple[float, float]]] = {}
    for one in predict(read_measurements(path.read_text(encoding="utf-8"), file=path.name)):
        row = one.row
        if row.text("mode") != "disagg" or one.times is None or row.ttft_s is None or row.itl_s is None:
            continue
        assert one.run is not None
        worker = one.run.decode.worker
        off = (one.times.itl_s / row.itl_s - 1.0, one.times.ttft_s / row.ttft_s - 1.0)
        for label in (f"{worker.model.name}, {worker.device.sku} {worker.engine.name}", "all"):
            groups.setdefault(label, []).append(off)
    lines = ["| prefill and decode apart | runs | TPOT median % | TPOT mean % | TTFT median % |", "|---|---|---|---|---|"]
    for label, errors in sorted(groups.items(), key=lambda item: (item[0] == "all", item[0])):
        interval, first = 100.0 * np.abs(np.array(errors)).T
        lines.append(
            f"| {label} | {len(errors)} | {np.median(interval):.1f} | {interval.mean():.1f} | {np.median(first):.1f} |"
        )
    return "\n".join(lines) + "\n"


def draw(data: Data, held: Predicted, path: Path) -> None:
    """Predicted against measured times of held-out groups, one dot for each run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.3), layout="constrained")
    odd = data.contradiction != ""
    engine = np.array([family.split()[1] for family in data.family])
    panels = (("interval between tokens, ms", held[0], data.runs.itl), ("time to first token, ms", held[1], data.runs.ttft))
    left, right = figure.subplots(1, 2)
    for axes, (title, found, measured) in zip((left, right), panels, strict=True):
        for name, colour in zip(ENGINES, ("#0072B2", "#E69F00", "#009E73"), strict=True):
            mine = (engine == name) & ~odd
            axes.plot(measured[mine] * 1e3, found[mine] * 1e3, ".", color=colour, markersize=3, alpha=0.5, label=name)
        axes.plot(measured[odd] * 1e3, found[odd] * 1e3, "x", color="#D55E00", markersize=5, label="contradicts itself")
        ends = np.array([min(measured.min(), found.min()), max(measured.max(), found.max())]) * 1e3
        axes.plot(ends, ends, color="#222222", linewidth=0.8)
        axes.fill_between(ends, ends / 1.25, ends * 1.25, color="#222222", alpha=0.08, linewidth=0, label="within 25 %")
        axes.set(xscale="log", yscale="log", title=title, xlabel="measured", ylabel="predicted")
    left.legend(frameon=False, fontsize=8, loc="lower right")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100, metadata={"Software": None})


def write_card(family: str, fits: Mapping[str, Mapping[str, float]], data: Data, held: Predicted) -> None:
    """Put fitted figures, notes and errors into a coefficients card; its other keys stay as they are."""
    path, yaml = CARDS / f"{family}.yaml", YAML()
    yaml.width, yaml.preserve_quotes = 120, True
    card = yaml.load(path.read_text(encoding="utf-8"))
    card["date"] = DoubleQuotedScalarString(datetime.date.today().isoformat())
    card["default"].update(as_card(fits[f"{family} vllm"]))
    for engine in ENGINES:
        label = f"{family} {engine}"
        mine = (data.family == label) & data.fitted
        models = ", ".join(sorted(set(data.model[mine])))
        card[engine].update(as_card(fits[label]))
        card[engine]["note"] = f"{mine.sum()} public runs of {models}; errors are those of held-out groups"
        card[engine].setdefault("fitted_error", {}).update(
            {"itl": _error(held[0], data.runs.itl, mine), "ttft": _error(held[1], data.runs.ttft, mine)}
        )
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(card, file)


def _error(found: Floats, measured: Floats, chosen: NDArray[np.bool_]) -> CommentedMap:
    off = np.abs(found / measured - 1.0)[chosen]
    median, most = np.percentile(off, [50, 90])
    error = CommentedMap(median=float(f"{median:.3g}"), p90=float(f"{most:.3g}"), points=int(chosen.sum()))
    error.fa.set_flow_style()
    return error


def main(arguments: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Fit, report and, where asked to, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("runs", type=Path, help="measured runs, a CSV file")
    parser.add_argument("--page", action="store_true", help="write docs/accuracy.md and its picture (needs matplotlib)")
    parser.add_argument("--write", action="store_true", help="write the coefficient cards as well")
    options = parser.parse_args(arguments)
    data = load(options.runs)
    fits = fit_families(data, data.fitted)
    text, held = report(data, fits)
    text += f"\n{apart(options.runs)}"
    say(text)
    if options.write:
        for family in ("hopper", "blackwell"):
            write_card(family, fits, data, held)
    if options.write or options.page:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition("<!-- fitted tables -->\n")
        after = rest.partition("<!-- end of fitted tables -->\n")[2]
        PAGE.write_text(f"{before}<!-- fitted tables -->\n{text}<!-- end of fitted tables -->\n{after}", encoding="utf-8")
        draw(data, held, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
