"""Serving at a fixed concurrency: what a closed-loop benchmark of a worker would measure, from the planner's own stage
times.

``concurrency`` clients send a prompt, wait for its last token and send the next one at once. With B of them in flight on
a replica, its tokens come every

    L = step(B) + (1 - w) * B * prefill_s / output_tokens

seconds, since each of them has one prompt read per ``output_tokens`` iterations; the share w is read in the opening burst,
when all clients start together and wait for first tokens instead. A first token takes prefill and the
overheads of its iteration, the wait behind other prompts (a machine-repairman queue: think time ``output_tokens * L``,
service prefill and a step), the share w of the opening burst, and, where the replica holds
fewer sequences than there are clients, the wait for room. Of that wait the first requests of all have half, so it counts
less by w / 2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from epd_models import catalog
from epd_models.architecture import Architecture
from epd_models.catalog import UnknownCard
from epd_models.device import Device
from epd_models.engine import Engine, Speculative
from epd_models.measurements import Measurement
from epd_models.memory import activation_bytes, kv_shape, language_weights_bytes
from epd_models.parallelism import IllegalParallelism, Parallelism
from epd_models.precision import Precision, UnsupportedPrecision
from epd_models.stages.decode import decode_seconds, decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

QUEUE_SHARE = 0.25
"""Part of the machine-repairman wait, which is for random service, that closed loops of equal requests show: they keep
the spacing in which their first prompts were read. Fitted by hand on public runs."""

OPENING_SHARE_APART = 0.1
"""Most that the opening burst weighs in runs of prefill and decode workers apart: one round in ten."""

BENCHMARK_MEMORY_FRACTION = 0.93
"""Share of a device's memory that whoever measures full replicas gives the engine, where it takes less by itself: public
runs of 671 GB of weights on four devices of 193 GB exist, and full vLLM replicas hold about this much."""

FORMATS = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "w8a8": "int8", "int8": "int8", "int4": "int4"}
FORMATS |= {"fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4"}
"""Storage formats by the names that files of measurements give them."""
_UNFLAGGED_DRAFTS = {("DeepSeek-R1", "trtllm"): Speculative(draft_tokens=1, accepted_tokens=0.8)}
"""Checkpoints and engines whose public runs draft with the model's own multi-token prediction without saying so: with one
draft, kept as often as its authors report (0.85 to 0.9) or a little less, the error of their intervals falls from a half to
a sixth."""
_SUFFIX = re.compile(r"-(?:FP8|NVFP4|FP4|MXFP4|BF16|AWQ|Instruct)$", re.IGNORECASE)
_POOLS = re.compile(r"\bP(\d+)\(([^)]*)\)\s*D(\d+)\(([^)]*)\)")
_DEGREE = re.compile(r"(tp|pp|adp|mep)(\d+)")


class Unpredictable(ValueError):
    """A row that names no worker the models can build; the message is its ``reason``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Replicas of one worker."""

    worker: Worker
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A closed-loop benchmark at fixed lengths.

    Attributes
    ----------
    decode : Group
        The workers that decode; they read the prompts too unless ``prefill`` does.
    prefill : Group or None
        Workers that read prompts for them.
    prompt_tokens, output_tokens : float
        Of every request.
    concurrency : float
        Requests in flight over all replicas.
    max_sequences : float
        Most sequences that a replica decodes together, as the engine was told; infinite where nobody limited them.
    """

    decode: Group
    prefill: Group | None = None
    prompt_tokens: float
    output_tokens: float
    concurrency: float
    max_sequences: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTimes:
    """Mean time to first token and mean interval between tokens, seconds."""

    ttft_s: float
    itl_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What is predicted for a measured row.

    Attributes
    ----------
    run : Run or None
        How the row was read; None where it could not be.
    times : ServedTimes or None
        None where nothing can be predicted.
    reason : str
        Why not, or how the row was read where its fields contradict each other; empty otherwise.
    """

    row: Measurement
    run: Run | None
    times: ServedTimes | None
    reason: str


def predict(rows: Iterable[Measurement]) -> list[Prediction]:
    """Predictions for measured rows, in their order; a row that cannot be predicted says why and the others go on."""
    predictions = []
    for row in rows:
        try:
            run, note = run_of(row)
            predictions.append(Prediction(row=row, run=run, times=closed_loop(run), reason=note))
        except Unpredictable as error:
            predictions.append(Prediction(row=row, run=None, times=None, reason=str(error)))
    return predictions


def closed_loop(run: Run) -> ServedTimes:
    """Times of a run on aggregated workers, or on prefill and decode workers apart."""
    return _together(run) if run.prefill is None else _apart(run, run.prefill)


def in_flight(
    worker: Worker, *, clients: float, prompt_tokens: float, output_tokens: float, max_sequences: float = math.inf
) -> float:
    """Sequences that decode together on a replica with so many clients: all of them, as far as the KV cache holds them.

    A sequence holds its prompt and, on average, half of its output; engines that reserve its whole output when they admit
    it hold that. The engine's limit of sequences is taken to be raised to the concurrency, as benchmarks do, unless it is
    given.
    """
    engine, cut = worker.engine, worker.cut
    used = language_weights_bytes(worker.model, worker.precision, cut) + activation_bytes(worker.model, engine, cut)
    fraction = max(engine.memory_fraction, BENCHMARK_MEMORY_FRACTION)
    room = worker.device.memory_bytes * fraction - used - engine.runtime_bytes
    context = prompt_tokens + output_tokens * (1.0 if engine.reserves_output else 0.5)
    held = kv_shape(worker.model, worker.precision, cut).held(context)
    return min(clients, max_sequences, max(1.0, room / held * cut.attention_data))


def _together(run: Run) -> ServedTimes:
    worker, clients = run.decode.worker, run.concurrency / run.decode.replicas
    prompt, output = run.prompt_tokens, run.output_tokens
    batch = in_flight(worker, clients=clients, prompt_tokens=prompt, output_tokens=output, max_sequences=run.max_sequences)
    step = _step_s(worker, batch, prompt + output / 2.0)
    prefill = prefill_time(worker)
    busy = float(prefill.busy_s(np.array([prompt]))[0])
    own = float(prefill.own_s(np.array([prompt]))[0]) + prefill.per_chunk + worker.engine.request_overhead_s
    opening_share = worker.coefficients.opening_share
    interval = step + (1.0 - opening_share) * batch * busy / output
    wait = QUEUE_SHARE * repairman_wait(batch, busy + step, output * interval)
    opening = opening_share * batch * busy
    room = (1.0 - opening_share / 2.0) * (clients - batch) / batch * (output * interval + busy + step)
    return ServedTimes(ttft_s=own + wait + opening + room, itl_s=interval)


def _apart(run: Run, prefill_group: Group) -> ServedTimes:
    """Prompts queue at the prefill workers, decode steps carry no prompts, caches cross the network in between.

    The hand-over takes what the fullest device of either side sends or receives, after the last layer is read: engines
    overlap a part of it, so this is its most. Published runs of workers apart last some ten rounds of their clients,
    whatever the engine, so the opening burst weighs :data:`OPENING_SHARE_APART` at the most. Clients that wait for room at
    the decode workers hold their first token back.
    """
    worker, reader = run.decode.worker, prefill_group.worker
    clients, readers = run.concurrency / run.decode.replicas, run.concurrency / prefill_group.replicas
    prompt, output = run.prompt_tokens, run.output_tokens
    prefill = prefill_time(reader)
    busy = float(prefill.busy_s(np.array([prompt]))[0]) + prefill.per_chunk
    own = float(prefill.own_s(np.array([prompt]))[0]) + prefill.per_chunk + reader.engine.request_overhead_s
    own += max(_hand_over_s(one, prompt) for one in (worker, reader))
    decoding = clients
    for _ in range(20):
        batch = in_flight(
            worker,
            clients=max(1.0, decoding),
            prompt_tokens=prompt,
            output_tokens=output,
            max_sequences=run.max_sequences,
        )
        step = _step_s(worker, batch, prompt + output / 2.0)
        wait = repairman_wait(readers, busy, output * step)
        decoding = clients * output * step / (output * step + wait + own)
    opening_share = min(reader.coefficients.opening_share, OPENING_SHARE_APART)
    room = (1.0 - opening_share / 2.0) * max(0.0, decoding - batch) / batch * output * step
    return ServedTimes(ttft_s=own + QUEUE_SHARE * wait + opening_share * readers * busy + room + step, itl_s=step)


def _hand_over_s(worker: Worker, prompt: float) -> float:
    """Seconds in which a device passes its part of a prompt's cache through its share of the network card."""
    device = worker.device
    bandwidth = device.nic_bandwidth / device.logical_per_unit or device.pcie_bandwidth
    held = kv_shape(worker.model, worker.precision, worker.cut).held(prompt)
    return held / bandwidth if bandwidth > 0.0 else math.inf


def _step_s(worker: Worker, batch: float, context: float) -> float:
    lane = batch / worker.cut.pipeline
    if worker.ratios.decode is None:
        step = decode_step(worker, sequences=lane)
        return step.seconds(lane, context) / step.tokens
    tokens = 1.0 + (worker.engine.speculative.accepted_tokens if worker.engine.speculative else 0.0)
    return float(decode_seconds(worker, np.array([lane]), np.array([context]))[0]) / tokens


def repairman_wait(clients: float, service_s: float, think_s: float) -> float:
    """Mean wait of a customer in a closed queue of one server (approximate mean-value analysis, Schweitzer 1979).

    >>> repairman_wait(1.0, 0.1, 10.0)
    0.0
    >>> round(repairman_wait(100.0, 1.0, 0.0), 6)
    99.0
    """
    slack = think_s - clients * service_s
    response = (math.sqrt(slack**2 + 4.0 * service_s * think_s) - slack) / 2.0
    return max(0.0, response - service_s)


def run_of(row: Measurement, *, model: Architecture | None = None, device: Device | None = None) -> tuple[Run, str]:
    """The run that a measured row describes, and a note where its fields had to be interpreted.

    Parameters
    ----------
    model, device : optional
        What the row's names stand for; looked up in the catalogue where absent.

    Raises
    ------
    Unpredictable
        With the reason.
    """
    model = named_model(row.text("model")) if model is None else model
    device = named_device(row.text("gpu")) if device is None else device
    engine = _engine(row.text("engine"))
    for (checkpoint, drafter), speculative in _UNFLAGGED_DRAFTS.items():
        if checkpoint in row.text("model") and engine.name == drafter:
            engine = replace(engine, speculative=speculative)
    precision = _precision(row, model, device)
    sizes = {name: _number(row, name) for name in ("isl", "osl", "concurrency")}
    mode = row.text("mode") or "agg"
    decode: Group
    readers: Group | None = None
    note = ""
    if mode == "disagg":
        decode, readers = _pools(row, model, device, precision, engine)
    elif mode in ("agg", "aggregated"):
        cut, note = _cut(row, model)
        stated = row.degree("tp") * row.degree("pp") * row.degree("attention_dp")
        replicas = 1 if note else max(1, int(_number(row, "n_gpu")) // stated)
        decode = _group(model, device, cut, precision, engine, replicas)
    else:
        raise Unpredictable(f"mode {mode!r} is neither 'agg' nor 'disagg'")
    if decode.worker.engine.speculative is not None:
        drafts = "read as drafting one token by multi-token prediction, as public runs of this checkpoint do unflagged"
        note = f"{note}; {drafts}" if note else drafts
    run = Run(
        decode=decode,
        prefill=readers,
        prompt_tokens=sizes["isl"],
        output_tokens=sizes["osl"],
        concurrency=sizes["concurrency"],
        max_sequences=row.numbers.get("max_sequences", math.inf),
    )
    return run, note


def _cut(row: Measurement, model: Architecture) -> tuple[Parallelism, str]:
    """Parallel degrees of an aggregated row.

    Public tables write the degree of expert parallelism into the tensor or attention-data degree as well: ranks that
    hold experts (``moe_tp * moe_ep``) settle how many devices there are.
    """
    _number(row, "tp")
    tensor, pipeline, data = row.degree("tp"), row.degree("pp"), row.degree("attention_dp")
    if model.experts is None:
        return Parallelism(tensor=tensor, pipeline=pipeline), ""
    slices, expert = row.degree("moe_tp"), row.degree("moe_ep")
    if tensor == data > 1 and expert == tensor * data:
        return Parallelism(attention_data=tensor, expert=tensor, pipeline=pipeline), _reading(row, tensor)
    if tensor == 1 and slices == expert > 1 and data == slices * expert:
        return Parallelism(attention_data=expert, expert=expert, pipeline=pipeline), _reading(row, expert)
    devices = int(row.numbers.get("n_gpu", 0.0))
    if data == 1 and tensor > devices > 0 and tensor == devices * expert:
        return Parallelism(tensor=devices, pipeline=pipeline, expert=min(expert, devices)), _reading(row, devices)
    note = ""
    if slices * expert > tensor * data and (slices * expert) % tensor == 0:
        data = slices * expert // tensor
        note = f"read as {data} ranks of attention data parallelism: moe_tp x moe_ep is {slices * expert}"
    ranks = tensor * data
    expert = max(degree for degree in range(1, min(expert, ranks) + 1) if ranks % degree == 0)
    return Parallelism(tensor=tensor, pipeline=pipeline, attention_data=data, expert=expert), note


def _reading(row: Measurement, devices: int) -> str:
    fields = ", ".join(f"{name} {row.text(name)}" for name in ("n_gpu", "tp", "attention_dp", "moe_tp", "moe_ep"))
    return f"read as one replica on {devices} devices: its degrees count expert parallelism twice ({fields})"


def _pools(
    row: Measurement, model: Architecture, device: Device, precision: Precision, engine: Engine
) -> tuple[Group, Group]:
    found = _POOLS.search(row.text("notes"))
    if found is None:
        raise Unpredictable("prefill and decode apart need worker counts in `notes`, as P1(tp8 mep8) D2(tp8 mep8)")
    readers, reader, decoders, decoder = found.groups()
    cuts = []
    for text in (reader, decoder):
        degrees = {name: int(number) for name, number in _DEGREE.findall(text)}
        ranks = degrees.get("tp", 1) * degrees.get("adp", 1)
        expert = max(d for d in range(1, ranks + 1) if ranks % d == 0 and d <= max(1, degrees.get("mep", 1)))
        cuts.append(
            Parallelism(
                tensor=degrees.get("tp", 1),
                pipeline=degrees.get("pp", 1),
                attention_data=degrees.get("adp", 1),
                expert=expert if model.experts is not None else 1,
            )
        )
    return (
        _group(model, device, cuts[1], precision, engine, int(decoders)),
        _group(model, device, cuts[0], precision, engine, int(readers)),
    )


def _group(
    model: Architecture, device: Device, cut: Parallelism, precision: Precision, engine: Engine, replicas: int
) -> Group:
    try:
        worker = Worker.checked(model=model, device=device, cut=cut, precision=precision, engine=engine)
    except (IllegalParallelism, UnsupportedPrecision) as error:
        raise Unpredictable(str(error)) from None
    weights = language_weights_bytes(model, precision, cut)
    if weights > device.memory_bytes:
        raise Unpredictable(
            f"{device.sku} {cut.label}: weights of {weights / 2**30:.1f} GiB per device exceed its "
            f"{device.memory_bytes / 2**30:.1f} GiB"
        )
    return Group(worker=worker, replicas=replicas)


def _precision(row: Measurement, model: Architecture, device: Device) -> Precision:
    """Weights as the row says, or as published; an 8-bit KV cache beside narrow weights where the device has one."""
    stated = row.text("dtype").lower()
    if stated and stated not in FORMATS:
        raise Unpredictable(f"dtype {stated!r} is unknown; known are {', '.join(FORMATS)}")
    weights = FORMATS[stated] if stated else model.native_weights
    if model.native_weights == "mxfp4":
        weights = "mxfp4"
    narrow = weights != "bf16" and "fp8" in device.kv_formats
    return Precision(weights=weights, kv_cache="fp8" if narrow else "bf16")


def named_model(name: str) -> Architecture:
    """A model by name or alias; precision and tuning marks at the end of a checkpoint's name are dropped until one is
    known; :class:`Unpredictable` names the nearest."""
    tried = [name, name.rsplit("/", 1)[-1]]
    while _SUFFIX.search(tried[-1]):
        tried.append(_SUFFIX.sub("", tried[-1]))
    for candidate in tried:
        try:
            return catalog.model(candidate)
        except UnknownCard:
            continue
    try:
        return catalog.model(name)
    except UnknownCard as error:
        raise Unpredictable(str(error)) from None


def named_device(name: str) -> Device:
    """A device by SKU or alias; :class:`Unpredictable` names the nearest."""
    try:
        return catalog.device(name)
    except UnknownCard as error:
        raise Unpredictable(str(error)) from None


def _engine(name: str) -> Engine:
    try:
        return catalog.engine(name)
    except UnknownCard as error:
        raise Unpredictable(str(error)) from None


def _number(row: Measurement, column: str) -> float:
    if column in row.numbers:
        return row.numbers[column]
    found = row.text(column)
    if not found:
        raise Unpredictable(f"{column} is empty")
    hint = "; give the degrees of a layout as numbers in tp, pp, attention_dp and moe_ep" if column == "tp" else ""
    raise Unpredictable(f"{column} is {found!r}, not a number{hint}")
