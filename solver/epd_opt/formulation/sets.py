"""Index sets of the programme and the bounds that follow from the demand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from epd_models.candidate import Arc, Candidate, Node, every_arc
from epd_opt.nodes import Filling, Nodes, counted, fillings, fluid, pieces
from epd_opt.problem import Demand, Offer, PlanningProblem

_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A device entry whose groups need not fit where there are as many units as they take.

    Attributes
    ----------
    pieces : Mapping
        For each of its candidates, the sizes that a replica takes and how often.
    hard, soft : tuple of int
        Sizes that do not fill chunks evenly, and those that fill what is left.
    fillings : tuple of Filling
        Ways to use a domain.
    chunks, rest : int
        Whole chunks among the owned units, and what is left of them.
    """

    nodes: Nodes
    pieces: Mapping[int, Mapping[int, int]]
    hard: tuple[int, ...]
    soft: tuple[int, ...]
    fillings: tuple[Filling, ...]
    chunks: int
    rest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Where a class passes from a sender to receivers.

    Attributes
    ----------
    place : tuple of str and Node
        The class, and the node of the sender at all levels.
    levels : tuple of int
        Levels of elapsed time, ascending; the same for all senders of the sender's kind.
    arriving, leaving : list of tuple of int and Arc
        Candidates' arcs.
    from_faster, to_slower : list of Arc
        Arcs from and to the sender's neighbours in bandwidth, of :attr:`Sets.slowing`.
    """

    place: tuple[str, Node]
    levels: tuple[int, ...]
    arriving: list[tuple[int, Arc]] = field(default_factory=list)
    leaving: list[tuple[int, Arc]] = field(default_factory=list)
    from_faster: list[Arc] = field(default_factory=list)
    to_slower: list[Arc] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Sets:
    """Everything the constraint families index over, in canonical order.

    Attributes
    ----------
    held : frozenset of str
        Device entries that count whether or not a candidate uses them.
    """

    problem: PlanningProblem
    held: frozenset[str] = frozenset()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Candidates, sorted by key."""
        return self.problem.candidates

    @cached_property
    def demands(self) -> Mapping[str, Demand]:
        """Demand of each class."""
        return {demand.name: demand for demand in self.problem.demands}

    @cached_property
    def offers(self) -> Mapping[str, Offer]:
        """Offers that some candidate uses, or that are held, by device entry."""
        used = {candidate.device for candidate in self.candidates} | self.held
        return {offer.name: offer for offer in self.problem.offers if offer.name in used}

    @cached_property
    def pools(self) -> Mapping[tuple[str, str], tuple[int, ...]]:
        """Physical pools: the candidates that are operating points of each."""
        result: dict[tuple[str, str], list[int]] = {}
        for k, candidate in enumerate(self.candidates):
            result.setdefault(candidate.physical, []).append(k)
        return {pool: tuple(members) for pool, members in sorted(result.items())}

    @cached_property
    def hand_overs(self) -> tuple[HandOver, ...]:
        """Hand-overs of every class, in canonical order."""
        levels: dict[tuple[str, Node], set[int]] = {}
        places = set[tuple[str, Node]]()
        for arc in set(every_arc(self.candidates)):
            for node in (arc.start, arc.end):
                if node.sender is not None:
                    places.add((arc.request_class, node.all_levels))
                    levels.setdefault((arc.request_class, node.all_like_senders), set()).add(node.level)
        chains = {chain: tuple(sorted(found)) for chain, found in levels.items()}
        result = {
            (name, node): HandOver(place=(name, node), levels=chains[name, node.all_like_senders])
            for name, node in sorted(places)
        }
        for k, candidate in enumerate(self.candidates):
            for arc in candidate.arcs:
                if arc.end.sender is not None:
                    result[arc.request_class, arc.end.all_levels].arriving.append((k, arc))
                if arc.start.sender is not None:
                    result[arc.request_class, arc.start.all_levels].leaving.append((k, arc))
        slowest: dict[tuple[str, Node], HandOver] = {}
        for (name, node), there in result.items():
            slower = slowest.get((name, node.all_like_senders))
            slowest[name, node.all_like_senders] = there
            if slower is None:
                continue
            for level in there.levels:
                ends = (Node.at(here.state, here.sender, level) for here in (node, slower.place[1]))
                arc = Arc.of(name, *ends)
                there.to_slower.append(arc)
                slower.from_faster.append(arc)
        return tuple(result.values())

    @cached_property
    def slowing(self) -> tuple[Arc, ...]:
        """Arcs that no candidate owns: what a sender hands over, taken as handed over by the next slower one of its kind
        at the same level."""
        return tuple(arc for there in self.hand_overs for arc in there.to_slower)

    @cached_property
    def most_replicas(self) -> tuple[int, ...]:
        """Per candidate, the replicas it would need to serve all the demand of its classes alone; never more are
        useful."""
        result = []
        for candidate in self.candidates:
            flows = {name: self.demands[name].rate for name in candidate.classes}
            need = max((row.need(flows) for row in candidate.rows), default=1.0)
            result.append(max(1, math.ceil(need - _SLACK * max(1.0, need))))
        return tuple(result)

    @cached_property
    def most_units(self) -> Mapping[str, int]:
        """Per device entry, the units that all its candidates at full size would take (or the stock, if smaller)."""
        result = dict.fromkeys(self.offers, 0.0)
        for candidate, most in zip(self.candidates, self.most_replicas, strict=True):
            result[candidate.device] += float((most + self.problem.standing_by(most)) * candidate.units)
        units = {}
        for name, offer in self.offers.items():
            bound = math.ceil(result[name])
            units[name] = bound if offer.stock is None else min(bound, offer.stock)
        return units

    @cached_property
    def most_lots(self) -> Mapping[str, int]:
        """Per device entry, the lots that hold all its units, each in a chunk of its own where groups are packed."""
        lots = {}
        for name, offer in self.offers.items():
            most = self.most_units[name]
            packed = self.packed.get(name)
            if packed is not None and packed.nodes.whole:
                most *= packed.nodes.chunk
                most = most if offer.stock is None else min(most, offer.stock)
            ordered = -(-offer.minimum // offer.lot)
            lots[name] = max(offer.lots_for(most), ordered) if offer.for_sale else 0
        return lots

    @cached_property
    def packed(self) -> Mapping[str, Packed]:
        """Device entries for which counting units is not enough."""
        result = {}
        for name, offer in self.offers.items():
            nodes = offer.nodes
            if nodes is None or not (nodes.whole or offer.owned >= nodes.chunk):
                continue
            parts = {
                k: pieces(nodes, int(candidate.units * nodes.unit))
                for k, candidate in enumerate(self.candidates)
                if candidate.device == name
            }
            sizes = frozenset(size for taken in parts.values() for size in taken)
            if counted(nodes, sizes, self.most_units[name], offer.owned):
                continue
            soft = fluid(nodes, sizes)
            chunks, rest = divmod(offer.owned, nodes.chunk)
            result[name] = Packed(
                nodes=nodes,
                pieces=parts,
                hard=tuple(sorted(sizes - set(soft))),
                soft=soft,
                fillings=fillings(nodes, sizes, owned=chunks > 0),
                chunks=chunks,
                rest=rest,
            )
        return result
