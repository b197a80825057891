"""The report of a plan: one HTML page that needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput, Problem
from epd_opt.report.page import Studies, page
from epd_opt.scenario_plan import demand_one_workload
from epd_opt.sensitivity.document import BREAK_EVEN_SCHEMA, STUDY_SCHEMA, BreakEvenDocument, StudyDocument
from epd_opt.sensitivity.moves_document import MARGINAL_SCHEMA, TORNADO_SCHEMA, MarginalDocument, TornadoDocument
from epd_opt.simulate.document import SIMULATION_SCHEMA, SimulationDocument
from epd_opt.strict import document_of

__all__ = ["report_html"]

Source = str | Path | Mapping[str, Any]
_Document = TypeVar("_Document", bound=BaseModel)


def report_html(
    document: PlanDocument, *, study: Source | Sequence[Source] | None = None, simulation: Source | None = None
) -> str:
    """The page of a plan.

    Parameters
    ----------
    document : PlanDocument
        The plan, or why there is none.
    study : str, Path or mapping, or several of them, optional
        A sensitivity study, a tornado, marginal values or a break-even of the same instance: its file or its content; of all
        but break-evens one at most.
    simulation : str, Path or mapping, optional
        A simulation of this plan (`epd-opt/simulation/v1`): its file or its content.

    Raises
    ------
    InvalidInput
        Study or simulation cannot be read, or belong to another plan.
    UsageError
        The plan is for several scenarios that are no hours of a day.
    """
    if document.hours is None:
        demand_one_workload(document)
    studies = _studies(document, study)
    seen = None if simulation is None else _read(SimulationDocument, simulation, "simulation", SIMULATION_SCHEMA)
    if seen is not None:
        _same_instance(document, seen.instance_sha256, simulation, "simulation")
        _same_fleet(document, seen, simulation)
    return page(document, studies=studies, simulation=seen)


def _studies(document: PlanDocument, given: Source | Sequence[Source] | None) -> Studies:
    """Studies of all kinds, told apart by their schema."""
    sources: list[Source] = []
    if isinstance(given, str | Path | Mapping):
        sources = [given]
    elif given is not None:
        sources = list(given)
    study: StudyDocument | None = None
    tornado: TornadoDocument | None = None
    marginal: MarginalDocument | None = None
    break_evens: list[BreakEvenDocument] = []
    for source in sources:
        content = source if isinstance(source, Mapping) else document_of(source, "study")
        schema = content.get("schema") if isinstance(content, Mapping) else None
        found: StudyDocument | TornadoDocument | MarginalDocument | BreakEvenDocument
        repeated = False
        if schema == TORNADO_SCHEMA:
            repeated, found = tornado is not None, _read(TornadoDocument, source, "study", TORNADO_SCHEMA)
            tornado = found
        elif schema == MARGINAL_SCHEMA:
            repeated, found = marginal is not None, _read(MarginalDocument, source, "study", MARGINAL_SCHEMA)
            marginal = found
        elif schema == BREAK_EVEN_SCHEMA:
            found = _read(BreakEvenDocument, source, "study", BREAK_EVEN_SCHEMA)
            break_evens.append(found)
        else:
            repeated, found = study is not None, _read(StudyDocument, source, "study", STUDY_SCHEMA)
            study = found
        _same_instance(document, found.instance_sha256, source, "study")
        if repeated:
            message = f"a second {schema} document: the page takes one, and any number of break-evens"
            raise InvalidInput([Problem(file=_file(source, "study"), path="schema", message=message)])
    return Studies(study=study, tornado=tornado, marginal=marginal, break_evens=tuple(break_evens))


def _read(kind: type[_Document], source: Source, what: str, schema: str) -> _Document:
    file = _file(source, what)
    content: Any = source if isinstance(source, Mapping) else document_of(source, what)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput([Problem(file=file, path=place, message=f"not an {schema} document: {first['msg']}")]) from None


def _same_instance(document: PlanDocument, found: str, source: Source | None, what: str) -> None:
    """Figures of different instances must not stand on one page."""
    made = document.provenance.instance_sha256
    if found != made:
        message = f"made for an instance with the hash {found[:12]}, the plan is for {made[:12]}"
        raise InvalidInput([Problem(file=_file(source, what), path="instance_sha256", message=message, hint=_HINTS[what])])


def _same_fleet(document: PlanDocument, found: SimulationDocument, source: Source | None) -> None:
    plan = {pool.name: pool.replicas for pool in document.pools}
    other = {name: pool.replicas for name, pool in found.pools.items()}
    differ = sorted(name for name in plan.keys() | other.keys() if plan.get(name) != other.get(name))
    if differ or document.classes.keys() != found.classes.keys():
        message = f"simulates another fleet: {', '.join(differ) or 'other classes'}"
        file = _file(source, "simulation")
        raise InvalidInput([Problem(file=file, path="pools", message=message, hint=_HINTS["simulation"])])


_HINTS = {
    "study": "make it anew from this plan's instance with `epd-opt sensitivity`",
    "simulation": "make it anew with `epd-opt simulate PLAN -o FILE`",
}


def _file(source: Source | None, what: str) -> str:
    return what if source is None or isinstance(source, Mapping) else str(source)
