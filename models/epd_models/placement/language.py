"""What a worker of the language model does with each class, whatever its placement and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from epd_models.entry import Entry
from epd_models.memory import KvShape, kv_shape
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.placement.parts import Floats
from epd_models.request import RequestLoad
from epd_models.stages.prefill import PrefillTime, prefill_time
from epd_models.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """Prompts of one class on a worker; arrays have shape (sizes,).

    Attributes
    ----------
    busy : Floats
        Lane seconds of prefill, iteration overheads left out.
    read : Floats
        Seconds until a prompt at its bin's upper edge is read when nothing else runs, iteration overheads left out.
    chunks : Floats
        Iterations that it takes.
    crossing : Floats
        Bytes of its KV cache over the whole replica.
    mean_crossing : float
        Mean bytes of the KV cache of a prompt over the whole replica.
    held : Floats
        Bytes of the KV cache of a prompt on one logical device.
    """

    busy: Floats
    read: Floats
    chunks: Floats
    crossing: Floats
    mean_crossing: float
    held: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A worker of the language model with the prompts of every class.

    Attributes
    ----------
    bandwidth : float
        Network bytes/s of the replica.
    chunk_s : float
        Seconds of the most prefill that one iteration carries.
    """

    worker: Worker
    prefill: PrefillTime
    kv: KvShape
    bandwidth: float
    chunk_s: float
    prompts: Mapping[str, Prompts]


def language(context: Context, entry: Entry, cut: Parallelism) -> Language:
    """The worker of an entry and cut.

    Raises
    ------
    NotBuildable
        It cannot exist.
    """
    return context.once(("language", entry.name, cut), lambda: _language(context, entry, cut))


def _language(context: Context, entry: Entry, cut: Parallelism) -> Language:
    worker = parts.language_worker(context, entry, cut)
    prefill = prefill_time(worker)
    kv = kv_shape(context.model, entry.precision, cut)
    return Language(
        worker=worker,
        prefill=prefill,
        kv=kv,
        bandwidth=parts.bandwidth(context.network, entry, worker.units),
        chunk_s=float(prefill.busy_s(np.array([float(context.engine.max_batched_tokens)]))[0]),
        prompts={load.name: _prompts(context, worker, prefill, kv, load) for load in context.loads},
    )


def _prompts(context: Context, worker: Worker, prefill: PrefillTime, kv: KvShape, load: RequestLoad) -> Prompts:
    upper = parts.upper_new_tokens(load)
    return Prompts(
        busy=parts.prefill_busy(load, prefill),
        read=prefill.own_s(upper, load.request.cached_tokens),
        chunks=parts.chunks(context, upper),
        crossing=parts.kv_transfer_bytes(worker, load, load.prompt_uppers),
        mean_crossing=float(parts.kv_transfer_bytes(worker, load, load.prompt_tokens) @ load.weights),
        held=parts.prompt_kv_bytes(load, kv, load.prompt_tokens),
    )
