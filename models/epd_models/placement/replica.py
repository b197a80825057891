"""One replica of a pool, second by second: what a simulation asks of the models that the planner's rows are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from epd_models.entry import Entry
from epd_models.memory import KvShape, kv_shape
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context, NotBuildable
from epd_models.placement.loops import compiled_context, fixed_s
from epd_models.placement.measured_only import measured_only
from epd_models.placement.table import PLACEMENTS
from epd_models.pool import Pool, Settings
from epd_models.stages.decode import StepTime, decode_seconds, decode_step
from epd_models.stages.encode import EncodeTime, encode_time, received_megapixels
from epd_models.stages.prefill import PrefillTime, prefill_time
from epd_models.vision import ImageLoad
from epd_models.worker import Worker


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A replica of a pool under its settings.

    Attributes
    ----------
    context : Context
        What it was built for; classes that do not fit on it are left out.
    """

    context: Context
    pool: Pool

    @property
    def entry(self) -> Entry:
        """The device entry."""
        return self.pool.entry

    @cached_property
    def worker(self) -> Worker:
        """The language model's worker; meaningless in encoder pools."""
        return parts.language_worker(self.context, self.pool.entry, self.pool.cut)

    @cached_property
    def prefill(self) -> PrefillTime:
        """Prompt times of one lane."""
        return prefill_time(self.worker)

    @cached_property
    def kv(self) -> KvShape:
        """KV memory of a sequence on one logical device."""
        return kv_shape(self.context.model, self.pool.entry.precision, self.pool.cut)

    @cached_property
    def whole_kv(self) -> KvShape:
        """KV memory of a sequence over the whole replica: what crosses the network."""
        return kv_shape(self.context.model, self.pool.entry.precision, Parallelism())

    @property
    def embedding_bytes_per_token(self) -> float:
        """Bytes that one image token takes on its way from an encoder."""
        return self.context.model.hidden * parts.EMBEDDING_BYTES

    @cached_property
    def most_sequences(self) -> int:
        """Sequences that may decode together on the replica: the compiled batch, or the engine's limit for each group of
        attention data parallelism."""
        return self.pool.settings.batch or self.context.engine.max_sequences * self.pool.cut.attention_data

    @property
    def reserves_all(self) -> bool:
        """Whether a sequence takes room for the longest request from its start."""
        return self.pool.entry.device.kv_reservation == "full"

    @property
    def reserves_output(self) -> bool:
        """Whether a sequence takes room for its own last token from its start."""
        return self.context.engine.reserves_output and not self.reserves_all

    def step(self, sequences: int) -> StepTime:
        """An iteration over exactly so many sequences of one lane; beside encoder processes it lasts longer."""
        step = self._step(sequences)
        return step.slower(1.0 + self.context.engine.shared_drag) if self.pool.placement == "shared" else step

    def _step(self, sequences: int) -> StepTime:
        """An iteration by itself; what is compiled costs the same however full it is.

        The planner uses a line above these times, which mixtures of experts and measured times bend away from. Of measured
        times, the line through those at the shortest and the longest mean context of the classes.
        """
        settings = self.pool.settings
        if not settings.batch and self.worker.ratios.decode is None:
            exact = decode_step(self.worker, sequences=sequences)
            return replace(exact, fixed=exact.fixed + sequences * exact.per_sequence, per_sequence=0.0)
        if not settings.batch:
            low, high = parts.contexts(self.context)
            high = max(high, low + 1.0)
            batch = np.array([float(sequences)])
            first, last = (float(decode_seconds(self.worker, batch, np.array([at]))[0]) for at in (low, high))
            slope = (last - first) / (sequences * (high - low))
            return StepTime(
                fixed=first - slope * sequences * low,
                per_sequence=0.0,
                per_context=slope,
                windows=(),
                tokens=self.pool.tokens_per_step,
            )
        compiled = parts.step_time(self.context, self.pool.entry, self.worker, settings)
        shaped = compiled_context(self.context, self.pool.entry) is not None
        return replace(
            compiled,
            fixed=fixed_s(self.context, self.pool.entry, compiled, settings),
            per_sequence=0.0,
            per_context=0.0 if shaped else compiled.per_context,
            windows=() if shaped else compiled.windows,
        )

    def image(self, load: ImageLoad, megapixels: float) -> EncodeTime:
        """Times of one image or clip step on one logical device."""
        assert self.context.model.vision is not None
        time = encode_time(
            self.context.model.vision,
            self.pool.entry.device,
            self.context.engine,
            load=load,
            megapixels=megapixels,
            encoder_format=self.pool.entry.precision.encoder,
        )
        received = received_megapixels(self.context.model.vision, load)
        ratios = parts.image_ratios(self.context, self.pool.entry)
        return time.corrected(ratios, received=received, uploaded=megapixels)


def built_replica(context: Context, entry: Entry, cut: Parallelism, placement: str, settings: Settings) -> Replica:
    """A replica as the planner builds its pool: classes that do not fit are left out, and batches stay within what a strict
    source of times measured.

    Raises
    ------
    NotBuildable
        It cannot exist.
    """
    context = measured_only(context, entry, cut, PLACEMENTS[placement].stages, [])
    while True:
        try:
            return Replica(context=context, pool=PLACEMENTS[placement].build(context, entry, cut, settings))
        except NotBuildable as error:
            refused = error.rejection.request_class
            left = tuple(load for load in context.loads if load.name != refused)
            if refused is None or not left:
                raise
            context = replace(context, loads=left)
