"""How the units of a device entry stand: servers, racks and scale-up domains, and which groups fit into them.

A group is what one replica takes (see :func:`pieces`), counted in logical devices. It stays within one domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from epd_opt.errors import EpdError

_MOST_FILLINGS = 5000


class TooManyFillings(EpdError):
    """Parallel degrees that fill a node in more ways than can be told apart."""

    exit_code = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Where the units of one device entry stand.

    Attributes
    ----------
    unit : int
        Logical devices of one sold unit; smaller groups stay within one.
    inner : int
        Logical devices of a scale-up domain that is only part of a server; groups no larger stay within one. Equal to
        ``domain`` elsewhere.
    domain : int
        Logical devices of the scale-up domain or server, whichever is larger: no group spans two.
    chunk : int
        Sold units that are always found together within one domain: whole domains, or servers of a rack that are sold as
        such.
    whole : bool
        Whether bought units come in whole chunks. Else they are put where they are wanted, and only owned ones stand in
        chunks.
    """

    unit: int
    inner: int
    domain: int
    chunk: int
    whole: bool

    @property
    def step(self) -> int:
        """Logical devices of a chunk."""
        return self.chunk * self.unit

    @property
    def parts(self) -> bool:
        """Whether a domain has several chunks, as a rack has trays: bought and owned ones may then share it."""
        return self.step < self.domain


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Filling:
    """One way to use a domain: groups of sizes that do not fill chunks evenly, and the chunks that they take.

    Attributes
    ----------
    groups : tuple of (int, int)
        Sizes in logical devices, and how many of each.
    chunks : int
        Chunks taken.
    free : int
        Logical devices left in them, for groups of sizes that do.
    """

    groups: tuple[tuple[int, int], ...]
    chunks: int
    free: int

    def holds(self, size: int) -> int:
        """Groups of a size."""
        return dict(self.groups).get(size, 0)


def pieces(nodes: Nodes, size: int) -> dict[int, int]:
    """Sizes that a replica takes in single domains, and how often: itself, or whole domains and the rest.

    >>> pieces(Nodes(unit=1, inner=8, domain=8, chunk=8, whole=True), 20)
    {8: 2, 4: 1}
    """
    whole, rest = divmod(size, nodes.domain)
    return {**({nodes.domain: whole} if whole else {}), **({rest: 1} if rest else {})}


def fluid(nodes: Nodes, sizes: Iterable[int]) -> tuple[int, ...]:
    """Sizes that fill whatever is left of chunks without waste: the smallest, as long as each divides all larger ones and
    the chunk.

    >>> fluid(Nodes(unit=1, inner=72, domain=72, chunk=72, whole=True), (1, 2, 4, 8, 16))
    (1, 2, 4, 8)
    """
    ordered = sorted(set(sizes))
    result = []
    for i, size in enumerate(ordered):
        if any(larger % size for larger in [*ordered[i + 1 :], nodes.step]) or nodes.inner % min(size, nodes.inner):
            break
        result.append(size)
    return tuple(result)


def counted(nodes: Nodes, sizes: Iterable[int], most: int, owned: int = 0) -> bool:
    """Whether groups of these sizes, up to ``most`` sold units in all, stand wherever there are as many units as they take.

    That is so where all sizes are fluid; and, where chunks are parts of a domain and the ``owned`` units are whole chunks,
    where every other size is a multiple of the chunk, or all units fit in one domain.
    """
    hard = set(sizes) - set(fluid(nodes, sizes))
    if not hard or not (nodes.parts and owned % nodes.chunk == 0):
        return not hard
    one_domain = most * nodes.unit <= nodes.domain and nodes.inner == nodes.domain and all(s % nodes.unit == 0 for s in hard)
    return one_domain or all(size % nodes.step == 0 for size in hard)


@cache
def fillings(nodes: Nodes, sizes: frozenset[int], *, owned: bool) -> tuple[Filling, ...]:
    """Ways to use a domain by groups of these sizes, in canonical order; those that another one replaces left out.

    Parameters
    ----------
    owned : bool
        Whether some domains are of owned units, where using fewer of them costs less.

    Raises
    ------
    TooManyFillings
        There are thousands.
    """
    soft = fluid(nodes, sizes)
    hard = sorted(sizes - set(soft), reverse=True)
    found: dict[tuple[int, ...], Filling] = {}
    for counts in _counts(nodes, hard, ()):
        groups = tuple((size, count) for size, count in zip(hard, counts, strict=True) if count)
        total = sum(size * count for size, count in groups)
        chunks = max(1, -(-total // nodes.step))
        found[counts] = Filling(groups=groups, chunks=chunks, free=chunks * nodes.step - total)
        if len(found) > _MOST_FILLINGS:
            raise TooManyFillings(
                f"groups of {', '.join(map(str, sorted(sizes)))} devices fill a domain of {nodes.domain} in more than "
                f"{_MOST_FILLINGS} ways; offer fewer parallel degrees"
            )
    kept = [
        filling
        for counts, filling in found.items()
        if (filling.groups or soft) and (soft or owned or not _replaced(filling, counts, found))
    ]
    return tuple(sorted(kept))


def _counts(nodes: Nodes, sizes: list[int], before: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Numbers of groups of each size that fit into a domain together."""
    if len(before) == len(sizes):
        yield before
        return
    count = 0
    while fits(nodes, dict(zip(sizes, (*before, count), strict=False)), nodes.domain):
        yield from _counts(nodes, sizes, (*before, count))
        count += 1


def _replaced(filling: Filling, counts: tuple[int, ...], found: Mapping[tuple[int, ...], Filling]) -> bool:
    """Whether a filling with one more group takes no more chunks."""
    more = ((*counts[:i], count + 1, *counts[i + 1 :]) for i, count in enumerate(counts))
    return any(other in found and found[other].chunks == filling.chunks for other in more)


def fits(nodes: Nodes, groups: Mapping[int, int], room: int) -> bool:
    """Whether groups stand in ``room`` logical devices of one domain: small ones within units and scale-up domains, the
    others anywhere in it."""
    small = [size for size, count in groups.items() if size < nodes.unit for _ in range(count)]
    units = least_bins(small, nodes.unit)
    taken = units * nodes.unit + sum(size * count for size, count in groups.items() if size >= nodes.unit)
    if taken > room:
        return False
    if nodes.inner == nodes.domain:
        return True
    linked = [size for size, count in groups.items() if nodes.unit <= size <= nodes.inner for _ in range(count)]
    return least_bins([*linked, *[nodes.unit] * units], nodes.inner) <= math.ceil(room / nodes.inner)


def least_bins(sizes: Iterable[int], capacity: int) -> int:
    """The least number of bins for some sizes, by search over all ways to fill them.

    >>> least_bins([5, 4, 4, 3], 8), least_bins([5, 5, 5], 8), least_bins([], 8)
    (2, 3, 0)
    """
    return _least_bins(tuple(sorted(sizes, reverse=True)), capacity)


@cache
def _least_bins(sizes: tuple[int, ...], capacity: int) -> int:
    if sum(sizes) <= capacity:
        return 1 if sizes else 0
    first, rest = sizes[0], sizes[1:]
    return 1 + min(_least_bins(left, capacity) for left in _after_a_bin(rest, capacity - first))


def _after_a_bin(sizes: tuple[int, ...], room: int) -> set[tuple[int, ...]]:
    """What is left of sizes after a bin took some, for every choice that cannot take another one."""
    result = set()

    def choose(left: tuple[int, ...], start: int, room: int) -> None:
        full = True
        for i in range(start, len(left)):
            if left[i] <= room:
                full = False
                if i == start or left[i] != left[i - 1]:
                    choose(left[:i] + left[i + 1 :], i, room - left[i])
        if full:
            result.add(left)

    choose(sizes, 0, room)
    return result
