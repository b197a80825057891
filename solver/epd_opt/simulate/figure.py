"""Simulations as pictures: how long requests took, and how full pools were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from epd_opt.extras import pyplot
from epd_opt.simulate.document import SimulationDocument
from epd_opt.simulate.run import Run
from epd_opt.wording import label, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
_MOST_POINTS = 2000


def simulation_figure(document: SimulationDocument, runs: Sequence[Run]) -> Figure:
    """Shares of requests below each TTFT and interval, and work, queues and memory of the pools over time."""
    plt = pyplot()
    figure: Figure
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    for label_, name in enumerate(document.classes):
        colour = _COLOURS[label_ % len(_COLOURS)]
        for axis, pick in ((axes[0][0], "ttft"), (axes[0][1], "itl")):
            seconds = np.concatenate([getattr(run.times[label_], pick) for run in runs])
            _shares(axis, seconds[np.isfinite(seconds)], printable(name), colour)
    axes[0][0].set(xlabel="time to first token, ms", ylabel="share of requests", xscale="log")
    axes[0][1].set(xlabel="mean interval between tokens, ms")
    for i, (name, pool) in enumerate(document.pools.items()):
        colour, times = _COLOURS[i % len(_COLOURS)], pool.over_time.time_s
        axes[1][0].plot(times, pool.over_time.queued, color=colour, lw=1, label=f"{label(i)} {printable(name)}")
        filled = pool.over_time.kv_memory if pool.kv_memory is not None else pool.over_time.working
        what = "KV memory" if pool.kv_memory is not None else "at work"
        axes[1][1].plot(times, filled, color=colour, lw=1, label=f"{label(i)} {what}")
    axes[1][0].set(xlabel="time, s", ylabel="requests waiting", ylim=(0, None))
    axes[1][1].set(xlabel="time, s", ylabel="share", ylim=(0, 1.05))
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=7)
    plt.close(figure)
    return figure


def _shares(axis: Axes, seconds: np.ndarray, name: str, colour: str) -> None:
    if not len(seconds):
        return
    points = np.linspace(0.0, 1.0, min(len(seconds), _MOST_POINTS))
    axis.plot(np.quantile(seconds, points) * 1e3, points, color=colour, lw=1.5, label=name)
