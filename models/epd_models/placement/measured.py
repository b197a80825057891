"""Workers that somebody measured: no model of their own, only the rate at which they keep every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from epd_models.candidate import STAGES, STATES, Arc, Candidate, Node, OperatingPoint, Stage, State
from epd_models.parallelism import Parallelism
from epd_models.provenance import Confidence
from epd_models.row import Row
from epd_models.transfer import Sender

MEASURED_SENDER = Sender(bandwidth=float("inf"))
"""A measured worker adds no delay of its own, hand-over included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWorker:
    """A measured worker on one device entry.

    Attributes
    ----------
    units : int
        Sold units per replica.
    max_rate : Mapping[str, float]
        Most requests/s of a replica for each class it serves, all of one kind; above zero.
    """

    name: str
    device: str
    sku: str
    units: int
    stages: tuple[Stage, ...]
    max_rate: Mapping[str, float]

    def passage(self, *, has_vision: bool) -> tuple[State, State] | None:
        """States between which a class passes; None where the worker does nothing for it."""
        first, last = STAGES.index(self.stages[0]), STAGES.index(self.stages[-1])
        if not has_vision:
            first = max(first, 1)
        return (STATES[first], STATES[last + 1]) if first <= last else None


_PLACEMENTS: Mapping[tuple[Stage, ...], str] = {
    ("encode",): "encoder_pool",
    ("prefill",): "prefill",
    ("decode",): "decode",
    ("encode", "prefill"): "encode_prefill",
    ("prefill", "decode"): "prefill_decode",
    ("encode", "prefill", "decode"): "integrated",
}


def measured_candidate(
    worker: MeasuredWorker,
    *,
    vision: Mapping[str, bool],
    senders: Mapping[tuple[str, State], Iterable[Sender]],
    last_level: Mapping[State, int],
) -> Candidate | None:
    """The one candidate of a measured worker: ``sum(rate / max_rate) <= replicas``.

    Parameters
    ----------
    vision : Mapping[str, bool]
        For each class, whether it carries images or video.
    senders : Mapping
        Who may hand over, for each class and state.
    last_level : Mapping
        Highest level of elapsed time at each hand-over state.
    """

    def arcs() -> Iterator[Arc]:
        for name in sorted(worker.max_rate):
            passage = worker.passage(has_vision=vision[name])
            if passage is None:
                continue
            start, end = passage
            enters = start == "raw" or (start == "encoded" and not vision[name])
            leaves = Node.at(end, None if end == "done" else MEASURED_SENDER)
            if enters:
                yield Arc.of(name, Node.at(start), leaves)
                continue
            slowest: dict[object, Sender] = {}
            for sender in sorted(senders.get((name, start), ())):
                slowest.setdefault(sender.kind, sender)
            for sender in slowest.values():
                begin = Node.at(start, sender, last_level[start])
                yield Arc.of(name, begin, leaves)

    found = tuple(arcs())
    if not found:
        return None
    names = sorted({arc.request_class for arc in found})
    cost = tuple((name, 1.0 / worker.max_rate[name]) for name in names)
    return Candidate(
        key=f"measured|{worker.name}|{worker.device}",
        pool=f"{worker.name}-{worker.device}",
        placement=_PLACEMENTS[worker.stages],
        stages=worker.stages,
        device=worker.device,
        sku=worker.sku,
        parallelism=Parallelism(),
        units=Fraction(worker.units),
        arcs=found,
        rows=(Row(kind="rate", load=cost),),
        busy_s=dict(cost),
        operating_point=OperatingPoint(),
        provenance="measured",
        confidence=Confidence.USER,
    )
