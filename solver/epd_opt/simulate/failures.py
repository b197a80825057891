"""What goes wrong in mid-run: replicas and nodes that die, links that slow down."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from epd_opt.errors import UsageError
from epd_opt.simulate.fleet import Fleet
from epd_opt.simulate.replicas import SimulatedPool, SimulatedReplica
from epd_opt.wording import label

_SPEC = re.compile(
    r"(?:(?P<kind>node|link)=)?(?P<what>.+?)(?::(?P<amount>\d+(?:\.\d+)?(?:ms|s)?))?"
    r"@(?P<start>\d+(?:\.\d+)?)s?(?:\+(?P<length>\d+(?:\.\d+)?)s?)?$"
)
_FORMS = "POOL[:REPLICAS]@60s[+120s], node=DEVICE[:NODES]@60s[+120s] or link=POOL:50ms@60s[+120s]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failure.

    Attributes
    ----------
    what : str
        Name or letter of a pool; of a device entry for nodes.
    amount : float
        Replicas, nodes, or seconds that a hand-over takes longer.
    start_s, length_s : float
        From the start of the time that counts; infinite where it is never mended.
    """

    kind: Literal["replica", "node", "link"]
    what: str
    amount: float
    start_s: float
    length_s: float = math.inf

    @property
    def text(self) -> str:
        """In words.

        >>> Failure(kind="replica", what="A", amount=1, start_s=60, length_s=120).text
        '1 replica of A from 60 s for 120 s'
        """
        amount = f"{self.amount * 1e3:g} ms more on hand-overs of" if self.kind == "link" else f"{self.amount:g} {self.kind}"
        plural = "s" if self.kind != "link" and self.amount != 1 else ""
        of = " " if self.kind == "link" else " of "
        until = f"for {self.length_s:g} s" if math.isfinite(self.length_s) else "to the end"
        return f"{amount}{plural}{of}{self.what} from {self.start_s:g} s {until}"


def parse_failure(spec: str) -> Failure:
    """A failure as written on the command line.

    Raises
    ------
    UsageError
        It cannot be read.

    Examples
    --------
    >>> parse_failure("link=A:50ms@60s+120s").amount
    0.05
    """
    found = _SPEC.fullmatch(spec.strip())
    if found is None:
        raise UsageError(f"--fail {spec}: cannot be read; write {_FORMS}")
    kind = found["kind"] or "replica"
    amount = found["amount"] or "1"
    timed = amount.endswith("s")
    if (kind == "link") != timed or (kind == "link" and found["amount"] is None):
        raise UsageError(f"--fail {spec}: {'a link is delayed by so many ms' if kind == 'link' else 'a count has no unit'}")
    number = float(amount.removesuffix("ms").removesuffix("s")) * (1e-3 if amount.endswith("ms") else 1.0)
    if kind != "link" and (number != int(number) or number < 1):
        raise UsageError(f"--fail {spec}: {amount} is no whole number of {kind}s")
    return Failure(
        kind=kind,  # type: ignore[arg-type]
        what=found["what"],
        amount=number,
        start_s=float(found["start"]),
        length_s=math.inf if found["length"] is None else float(found["length"]),
    )


def plan_failures(failures: Sequence[Failure], fleet: Fleet, start_s: float) -> None:
    """Put failures on the clock; ``start_s`` is where the time that counts begins.

    Raises
    ------
    UsageError
        They name no pool or device, or more replicas than there are.
    """
    for failure in failures:
        begin, end = start_s + failure.start_s, start_s + failure.start_s + failure.length_s
        if failure.kind == "link":
            pool = _pool(fleet, failure.what)
            fleet.clock.at(begin, _delay, (pool, failure.amount))
            if math.isfinite(end):
                fleet.clock.at(end, _delay, (pool, -failure.amount))
            continue
        if failure.kind == "replica":
            victims: list[SimulatedReplica] = []
            fleet.clock.at(begin, _kill_some, (fleet, _able(fleet, failure), int(failure.amount), victims))
        else:
            victims = _on_nodes(fleet, failure)
            fleet.clock.at(begin, _kill, (fleet, victims))
        if math.isfinite(end):
            fleet.clock.at(end, _revive, (fleet, victims))


def _delay(_: float, argument: tuple[SimulatedPool, float]) -> None:
    pool, seconds = argument
    pool.delay_s += seconds


def _kill(time: float, argument: tuple[Fleet, list[SimulatedReplica]]) -> None:
    fleet, victims = argument
    for replica in victims:
        fleet.kill(time, replica)


def _kill_some(time: float, argument: tuple[Fleet, SimulatedPool, int, list[SimulatedReplica]]) -> None:
    """Replicas that serve now die; they are noted among the victims."""
    fleet, pool, count, victims = argument
    victims += pool.alive[:count]
    _kill(time, (fleet, victims))


def _revive(time: float, argument: tuple[Fleet, list[SimulatedReplica]]) -> None:
    fleet, victims = argument
    for replica in victims:
        fleet.revive(time, replica)


def _pool(fleet: Fleet, name: str) -> SimulatedPool:
    """A pool by its name, or by its letter in the plan's tables."""
    for i, pool in enumerate(fleet.pools):
        if name == pool.name or name.upper() == label(i):
            return pool
    known = ", ".join(f"{label(i)} ({pool.name})" for i, pool in enumerate(fleet.pools))
    raise UsageError(f"--fail: no pool {name!r}; there are {known}")


def _able(fleet: Fleet, failure: Failure) -> SimulatedPool:
    """The pool of a failure; so many of it can fail."""
    pool = _pool(fleet, failure.what)
    if failure.amount > pool.planned.replicas:
        raise UsageError(f"--fail: {pool.name} has {pool.planned.replicas} replicas, {failure.amount:g} cannot fail")
    return pool


def _on_nodes(fleet: Fleet, failure: Failure) -> list[SimulatedReplica]:
    """Replicas with a device on the first nodes of an entry; replicas fill nodes one after the other, pool by pool."""
    entries = {entry.name: entry for entry in fleet.resolved.entries}
    entry = entries.get(failure.what)
    if entry is None:
        known = ", ".join(sorted(entries)) or "none with a card"
        raise UsageError(f"--fail: no device entry {failure.what!r} whose nodes are known; there are {known}")
    size = entry.device.units_per_server
    victims = []
    taken = 0.0
    for pool in fleet.pools:
        if pool.planned.device != entry.name:
            continue
        each = pool.planned.devices / len(pool.replicas)
        for replica in pool.replicas:
            if taken < failure.amount * size - 1e-9:
                victims.append(replica)
            taken += each
    if not victims:
        raise UsageError(f"--fail: the plan uses no {failure.what}")
    return victims
