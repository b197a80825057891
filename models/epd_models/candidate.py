"""The seam between the packages: a pool that could exist, as linear rows. The optimiser knows hardware only through this."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from epd_models.parallelism import Parallelism
from epd_models.provenance import Confidence
from epd_models.row import Row
from epd_models.source import SourceName, TimeOrigin
from epd_models.transfer import Sender

State = Literal["raw", "encoded", "prefilled", "done"]
Stage = Literal["encode", "prefill", "decode"]

STATES: tuple[State, ...] = ("raw", "encoded", "prefilled", "done")
STAGES: tuple[Stage, ...] = ("encode", "prefill", "decode")

_REMEMBERED = 2**16
"""Nodes and arcs that are kept to be the same objects when they are asked for again."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Node:
    """A node of the stage graph of one class.

    Attributes
    ----------
    state : State
        How far the request has come.
    sender : Sender or None
        Who handed it over; None where the class enters and where it leaves.
    level : int
        Index into the class's levels of elapsed TTFT: at most that much has passed. A request may always be treated as
        later than it is.
    """

    state: State
    sender: Sender | None = None
    level: int = 0
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: places are looked up far more often than made."""
        object.__setattr__(self, "_hash", hash((self.state, self.sender, self.level)))

    def __hash__(self) -> int:
        """Of all that makes it equal to another."""
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Hashes of text differ between processes: made anew there."""
        return Node.at, (self.state, self.sender, self.level)

    @staticmethod
    @lru_cache(_REMEMBERED)
    def at(state: State, sender: Sender | None = None, level: int = 0) -> Node:
        """A node, the same object each time: thousands of pools share few of them."""
        return Node(state=state, sender=sender, level=level)

    @property
    def all_levels(self) -> Node:
        """What stands for the node at all its levels."""
        return _at_all_levels(self)

    @property
    def all_like_senders(self) -> Node:
        """What stands for the node at all its levels and with all senders of its sender's kind."""
        return _with_all_like_senders(self)

    def may_pass_for(self, other: Node) -> bool:
        """Whether a request here may be treated as being there: a little later, or handed over by a slower sender."""
        if self.sender is None or other.sender is None:
            return self == other
        alike = (self.state, self.sender.kind) == (other.state, other.sender.kind)
        return alike and self.sender.bandwidth >= other.sender.bandwidth and self.level <= other.level


@lru_cache(_REMEMBERED)
def _at_all_levels(node: Node) -> Node:
    return Node.at(node.state, node.sender)


@lru_cache(_REMEMBERED)
def _with_all_like_senders(node: Node) -> Node:
    return Node.at(node.state, None if node.sender is None else replace(node.sender, bandwidth=0.0))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Arc:
    """A class passing through a candidate."""

    request_class: str
    start: Node
    end: Node
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash once: arcs are looked up far more often than made."""
        object.__setattr__(self, "_hash", hash((self.request_class, self.start, self.end)))

    def __hash__(self) -> int:
        """Of all that makes it equal to another."""
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        """Hashes of text differ between processes: made anew there."""
        return Arc.of, (self.request_class, self.start, self.end)

    @staticmethod
    @lru_cache(_REMEMBERED)
    def of(request_class: str, start: Node, end: Node) -> Arc:
        """An arc, the same object each time."""
        return Arc(request_class=request_class, start=start, end=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """How the replicas of a pool are run and loaded; times in seconds, zero or empty where it does not apply.

    Attributes
    ----------
    max_sequences, max_batched_tokens, memory_fraction, max_context_tokens, encoder_processes, fan_out, batch
        Engine settings to deploy.
    portion : int
        Which of the ways to share an end-to-end target is kept.
    design_itl_s : float
        Mean token interval the pool is sized for.
    wait_s : Mapping[str, float]
        Longest planned wait of each class over all queues of the pool, at its risk.
    staffing : Mapping[str, str]
        Rule that sizes each queue.
    itl_promised_s : Mapping[str, float]
        Interval that each class is promised at its percentile.
    """

    max_sequences: int = 0
    max_batched_tokens: int = 0
    memory_fraction: float = 0.0
    max_context_tokens: int = 0
    encoder_processes: int = 0
    fan_out: int = 1
    batch: int = 0
    portion: int = 0
    design_itl_s: float = 0.0
    wait_s: Mapping[str, float] = field(default_factory=dict)
    staffing: Mapping[str, str] = field(default_factory=dict)
    itl_promised_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pool at one operating point.

    With x the requests/s of each class through the pool, n its replicas and y whether it is open, it can exist where
    every row holds: ``sum(load * x) + setup * y <= n``.

    Attributes
    ----------
    key : str
        Unique and independent of the order of the instance.
    pool : str
        Name of the physical pool: placement, device entry and parallelism, or the measured worker; its operating
        points share spare replicas.
    units : Fraction
        Sold units per replica.
    busy_s : Mapping[str, float]
        Replica-seconds of work per request of each class, for the energy that depends on load.
    provenance : SourceName
        Source of the times: the weakest of its stages', or "measured".
    times : tuple of TimeOrigin
        Where the times of each stage come from; empty for measured workers.
    """

    key: str
    pool: str
    placement: str
    stages: tuple[Stage, ...]
    device: str
    sku: str
    parallelism: Parallelism
    units: Fraction
    arcs: tuple[Arc, ...]
    rows: tuple[Row, ...]
    busy_s: Mapping[str, float]
    operating_point: OperatingPoint
    provenance: SourceName
    confidence: Confidence
    times: tuple[TimeOrigin, ...] = ()

    @property
    def physical(self) -> tuple[str, str]:
        """What its physical pool is known by: device entry and name."""
        return self.device, self.pool

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes it can serve, sorted."""
        return tuple(sorted({arc.request_class for arc in self.arcs}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why a pool, or a class in a pool, is not on offer.

    Attributes
    ----------
    limit : str
        memory, ttft_ms, itl_ms, e2e_ms, context_length, parallelism, precision, no_price, forbid or rack_kw.
    request_class : str or None
        Class concerned; None where the whole pool is.
    wanted, best_reachable : float or None
        In the unit that the limit's name states (bytes for memory).
    """

    limit: str
    device: str
    text: str
    pool: str = ""
    request_class: str | None = None
    wanted: float | None = None
    best_reachable: float | None = None


def every_arc(candidates: Iterable[Candidate]) -> Iterator[Arc]:
    """The arcs of each candidate in turn."""
    return itertools.chain.from_iterable(candidate.arcs for candidate in candidates)
