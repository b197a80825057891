"""Runs reduced to what one unit of each coefficient costs: fitting then takes a few matrix products instead of models.

Times are linear in overheads and in the inverse of most shares. A run is reduced once, by the stage functions of the
planner themselves, with every coefficient silent but one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epd_models.device import Coefficients
from epd_models.measurements import Measurement
from epd_models.serving import QUEUE_SHARE, Run, in_flight
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NOT_LINEAR = ("narrow_share", "expert_half_width", "opening_share")
LINEAR = (
    "bandwidth_share",
    "expert_bandwidth_share",
    "kv_bandwidth_share",
    "prefill_share",
    "decode_share",
    "expert_share",
    "link_share",
    "activation_passes",
    "step_overhead_s",
    "layer_overhead_s",
    "narrow_layer_overhead_s",
    "latent_layer_overhead_s",
    "expert_layer_overhead_s",
    "sequence_overhead_s",
    "collective_latency_s",
    "prompt_overhead_s",
)
"""Coefficients that times are linear in, or in their inverse."""

NAMES = (*LINEAR, *_NOT_LINEAR)
"""All coefficients of the language model that runs are fitted with; ``attention_share`` keeps the card's value."""

_KV = LINEAR.index("kv_bandwidth_share")
_OTHERS = np.delete(np.arange(len(LINEAR)), _KV)
_SILENT = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """Runs as arrays.

    Attributes
    ----------
    step, busy, own : ndarray of shape (coefficients, runs)
        What a unit of each coefficient of :data:`LINEAR` costs an iteration, the device time of a prompt and its latency
        when nothing else runs, seconds.
    attention : ndarray of shape (3, runs)
        What computing attention costs the three of them at the card's share, seconds.
    dense_doublings, expert_doublings : ndarray of shape (runs,)
        Halvings of the compute format below 16 bits, in dense matrices and in experts.
    slice_width : ndarray of shape (runs,)
        Columns of an expert on one rank.
    batch, clients : ndarray of shape (runs,)
        Sequences that decode together on a replica, and clients that send to it.
    output : ndarray of shape (runs,)
        Tokens of an answer.
    request_overhead : ndarray of shape (runs,)
        Of the engine, seconds.
    ttft, itl : ndarray of shape (runs,)
        As measured, seconds; NaN where they were not.
    """

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

    def at(self, chosen: Bools) -> Reduced:
        """Some of the runs."""
        return Reduced(**{field.name: getattr(self, field.name)[..., chosen] for field in dataclasses.fields(self)})

    def __len__(self) -> int:
        return int(self.itl.size)


def reduce_runs(runs: Iterable[tuple[Run, Measurement]]) -> Reduced:
    """Runs on aggregated workers with what was measured of them, in their order."""
    rows = [_reduce(run, row) for run, row in runs]
    return Reduced(**{field.name: np.array([row[field.name] for row in rows]).T for field in dataclasses.fields(Reduced)})


def times(values: Mapping[str, float], runs: Reduced) -> tuple[Floats, Floats]:
    """Interval between tokens and time to first token of each run, as :mod:`epd_models.serving` computes them.

    Parameters
    ----------
    values : mapping
        A value for each of :data:`NAMES`.
    """
    units = _units(values, runs)
    attending = np.maximum(runs.step[_KV] * units[_KV], runs.attention[0])
    step = np.sum(runs.step[_OTHERS] * units[_OTHERS], axis=0) + attending
    busy = np.sum(runs.busy * units, axis=0) + runs.attention[1]
    own = np.sum(runs.own * units, axis=0) + runs.attention[2] + runs.request_overhead
    opening = values["opening_share"]
    interval = step + (1.0 - opening) * runs.batch * busy / runs.output
    think, service = runs.output * interval, busy + step
    slack = think - runs.batch * service
    wait = np.maximum(0.0, (np.sqrt(slack**2 + 4.0 * service * think) - slack) / 2.0 - service)
    room = (1.0 - opening / 2.0) * (runs.clients - runs.batch) / runs.batch * (think + service)
    return interval, own + QUEUE_SHARE * wait + opening * runs.batch * busy + room


def _units(values: Mapping[str, float], runs: Reduced) -> Floats:
    units = np.empty_like(runs.step)
    for index, name in enumerate(LINEAR):
        units[index] = 1.0 / values[name] if name.endswith("_share") else values[name]
        if name in ("prefill_share", "decode_share"):
            units[index] *= values["narrow_share"] ** -runs.dense_doublings
        elif name == "expert_share":
            units[index] *= values["narrow_share"] ** -runs.expert_doublings
        elif name == "expert_bandwidth_share":
            units[index] *= 1.0 + values["expert_half_width"] / runs.slice_width
    return units


def _silent(worker: Worker, **loud: float) -> Worker:
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


def _reduce(run: Run, row: Measurement) -> dict[str, object]:
    worker, clients = run.decode.worker, run.concurrency / run.decode.replicas
    prompt, context = np.array([run.prompt_tokens]), run.prompt_tokens + run.output_tokens / 2.0
    batch = in_flight(
        worker,
        clients=clients,
        prompt_tokens=run.prompt_tokens,
        output_tokens=run.output_tokens,
        max_sequences=run.max_sequences,
    )
    lane = batch / worker.cut.pipeline

    def costs(**loud: float) -> tuple[float, float, float]:
        loud_worker = _silent(worker, **loud)
        prefill = prefill_time(loud_worker)
        decoding = decode_step(loud_worker, sequences=lane)
        step = decoding.seconds(lane, context) / decoding.tokens
        own = float(prefill.own_s(prompt)[0]) + prefill.per_chunk
        return step, float(prefill.busy_s(prompt)[0]), own

    columns = [costs(**{name: 1.0}) for name in LINEAR]
    experts = worker.model.experts
    doublings = max(0.0, math.log2(worker.peak / worker.device.peaks["bf16"]))
    ranks = worker.cut.tensor * worker.cut.attention_data
    return {
        "step": [column[0] for column in columns],
        "busy": [column[1] for column in columns],
        "own": [column[2] for column in columns],
        "attention": list(costs(attention_share=worker.coefficients.attention_share)),
        "dense_doublings": 0.0 if worker.wide_dense else doublings,
        "expert_doublings": doublings,
        "slice_width": experts.dim * worker.cut.expert / ranks if experts is not None else 1.0,
        "batch": batch,
        "clients": clients,
        "output": run.output_tokens,
        "request_overhead": worker.engine.request_overhead_s,
        "ttft": math.nan if row.ttft_s is None else row.ttft_s,
        "itl": math.nan if row.itl_s is None else row.itl_s,
    }
