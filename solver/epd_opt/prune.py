"""Leaving out what can never matter: arcs that lead nowhere, rows that never bind, and candidates that another one can
always replace."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from epd_models.candidate import Arc, Candidate, Node, every_arc
from epd_models.row import Row
from epd_opt.problem import PlanningProblem


def prune(problem: PlanningProblem, each: Callable[[], None] = lambda: None) -> PlanningProblem:
    """The same problem, with the same optimum, over fewer candidates.

    Parameters
    ----------
    each : callable
        Called again and again; may raise to end the work.
    """
    kept = connected(thin(replace(problem, candidates=tuple(connected(problem.candidates))), each))
    return replace(problem, candidates=tuple(sorted(kept, key=lambda candidate: candidate.key)))


def thin(problem: PlanningProblem, each: Callable[[], None] = lambda: None) -> list[Candidate]:
    """Candidates without rows that never bind, and without those that another operating point of their pool can replace."""
    rates = {demand.name: demand.rate for demand in problem.demands}
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in problem.candidates:
        groups.setdefault(candidate.physical, []).append(candidate)
    metered = {offer.name for offer in problem.offers if offer.busy_usd_per_unit_second}
    result: list[Candidate] = []
    for (device, _), group in groups.items():
        each()
        result += undominated([lean(candidate, rates) for candidate in group], metered=device in metered)
    return result


def lean(candidate: Candidate, rates: Mapping[str, float]) -> Candidate:
    """A candidate without the rows that can never bind: implied by another one and by having a replica at all."""
    served = candidate.classes
    own = {name: rates[name] for name in served}
    kept = [row.only(served) for row in candidate.rows]
    for row in sorted(kept, key=lambda row: row.need(own)):
        others = [other for other in kept if other is not row]
        if row.implied_by(others, own):
            kept = others
    return replace(candidate, rows=tuple(kept))


def stage_graph(arcs: Iterable[Arc]) -> nx.DiGraph:
    """The stage graph of a class with these arcs: nodes are :class:`Node`; being early allows being late, and a fast sender
    may pass for a slower one of its kind."""
    graph = nx.DiGraph()
    graph.add_edges_from((arc.start, arc.end) for arc in arcs)
    for grid in grids(graph.nodes).values():
        for chain in (*grid, *zip(*grid, strict=True)):
            nx.add_path(graph, chain)
    return graph


def grids(nodes: Iterable[Node]) -> dict[Node, list[list[Node]]]:
    """Nodes of hand-overs by their kind of sender (see :attr:`Node.all_like_senders`), missing ones added: a row for each
    sender, the fastest first, with its levels ascending."""
    like: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.sender is not None:
            like.setdefault(node.all_like_senders, []).append(node)
    result = {}
    for kind, some in sorted(like.items()):
        levels = sorted({node.level for node in some})
        senders = sorted({node.sender for node in some if node.sender is not None}, reverse=True)
        result[kind] = [[Node.at(kind.state, sender, level) for level in levels] for sender in senders]
    return result


def connected(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates with only those arcs that lie on a way from a class's source to its end."""
    candidates = list(candidates)
    by_class: dict[str, list[Arc]] = {}
    for arc in set(every_arc(candidates)):
        by_class.setdefault(arc.request_class, []).append(arc)
    useless = frozenset(itertools.chain.from_iterable(_leading_nowhere(arcs) for arcs in by_class.values()))
    result = []
    for candidate in candidates:
        if useless.isdisjoint(candidate.arcs):
            result.append(candidate)
        elif arcs := tuple(arc for arc in candidate.arcs if arc not in useless):
            result.append(replace(candidate, arcs=arcs))
    return result


def _leading_nowhere(arcs: Sequence[Arc]) -> Iterator[Arc]:
    """Those of a class's arcs that lie on no way from its source to its end."""
    graph = stage_graph(arcs)
    sources = [node for node in graph if node.sender is None and node.state != "done"]
    sinks = [node for node in graph if node.state == "done"]
    ahead = set(sources).union(*(nx.descendants(graph, node) for node in sources))
    back = set(sinks).union(*(nx.ancestors(graph, node) for node in sinks))
    useful = ahead & back
    return (arc for arc in arcs if arc.start not in useful or arc.end not in useful)


def undominated(group: list[Candidate], *, metered: bool) -> list[Candidate]:
    """Operating points of one physical pool that no other one can replace.

    One replaces another when it offers every arc of it (or an earlier one) and asks for no more replicas at any flow:
    for each of its rows the other has a row that is at least as demanding. Where work costs energy (``metered``), it
    must not work longer either. Of equals the first in order stays.
    """
    if len(group) < 2:
        return group
    group = sorted(group, key=lambda candidate: candidate.key)
    classes = sorted({name for candidate in group for name in candidate.classes})
    kinds = sorted({kind for candidate in group for kind, _ in _numbered(candidate)})
    need = np.zeros((len(group), len(kinds) + 1, len(classes) + 1))
    for i, candidate in enumerate(group):
        if metered:
            need[i, -1] = [0.0, *(candidate.busy_s.get(name, 0.0) for name in classes)]
        for kind, row in _numbered(candidate):
            load = dict(row.load)
            need[i, kinds.index(kind)] = [row.setup, *(load.get(name, 0.0) for name in classes)]
    served = np.array([[name in candidate.classes for name in classes] for candidate in group])
    early = _earliness(group)
    alive = np.ones(len(group), dtype=bool)
    order = np.argsort(-served.sum(axis=1), kind="stable")
    for i in order:
        if not alive[i]:
            continue
        mine = need[i]
        cares = np.concatenate([np.ones((len(group), 1), dtype=bool), served], axis=1)[:, None, :]
        no_worse = ((mine[None] <= need * (1 + 1e-12)) | ~cares).all(axis=(1, 2))
        covers = (early[i][None] <= early).all(axis=1)
        beaten = no_worse & covers & alive
        beaten[i] = False
        same = beaten & ((need[i][None] == need).all(axis=(1, 2))) & ((early[i][None] == early).all(axis=1))
        beaten &= ~same | (np.arange(len(group)) > i)
        alive &= ~beaten
    return [candidate for candidate, keep in zip(group, alive, strict=True) if keep]


def _numbered(candidate: Candidate) -> list[tuple[tuple[str, int], Row]]:
    """Rows with their kind and their number among rows of that kind."""
    seen: dict[str, int] = {}
    result = []
    for row in candidate.rows:
        seen[row.kind] = seen.get(row.kind, -1) + 1
        result.append(((row.kind, seen[row.kind]), row))
    return result


def _earliness(group: list[Candidate]) -> NDArray[np.float64]:
    """For each candidate and each kind of passage, how early it ends for every start level; inf where not offered.

    Columns: for every (class, start, end state, end sender) that occurs in the group, the lowest end level that a candidate
    reaches from that start, or from a later one or a slower sender that it may pass for.
    """
    starts: dict[tuple[str, Node, Node], dict[Node, None]] = {}
    for candidate in group:
        for arc in candidate.arcs:
            starts.setdefault(_passage(arc), {})[arc.start] = None
    columns = [(passage, start) for passage, some in starts.items() for start in some]
    table = np.full((len(group), len(columns)), np.inf)
    for i, candidate in enumerate(group):
        by_passage: dict[tuple[str, Node, Node], list[Arc]] = {}
        for arc in candidate.arcs:
            by_passage.setdefault(_passage(arc), []).append(arc)
        for j, (passage, start) in enumerate(columns):
            ends = [arc.end.level for arc in by_passage.get(passage, ()) if start.may_pass_for(arc.start)]
            if ends:
                table[i, j] = min(ends)
    return table


def _passage(arc: Arc) -> tuple[str, Node, Node]:
    """What arcs that may replace one another have in common."""
    return arc.request_class, arc.start.all_like_senders, arc.end.all_levels
