"""The report of a plan: one HTML page that needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput, Problem
from epd_opt.report.page import page
from epd_opt.scenario_plan import demand_one_workload
from epd_opt.sensitivity.document import STUDY_SCHEMA, StudyDocument
from epd_opt.simulate.document import SIMULATION_SCHEMA, SimulationDocument
from epd_opt.strict import document_of

__all__ = ["report_html"]

Source = str | Path | Mapping[str, Any]
_Document = TypeVar("_Document", bound=BaseModel)


def report_html(document: PlanDocument, *, study: Source | None = None, simulation: Source | None = None) -> str:
    """The page of a plan.

    Parameters
    ----------
    document : PlanDocument
        The plan, or why there is none.
    study : str, Path or mapping, optional
        A sensitivity study of the same instance (`epd-opt/study/v1`): its file or its content.
    simulation : str, Path or mapping, optional
        A simulation of this plan (`epd-opt/simulation/v1`): its file or its content.

    Raises
    ------
    InvalidInput
        Study or simulation cannot be read, or belong to another plan.
    UsageError
        The plan is for several scenarios.
    """
    demand_one_workload(document)
    varied = None if study is None else _read(StudyDocument, study, "study", STUDY_SCHEMA)
    seen = None if simulation is None else _read(SimulationDocument, simulation, "simulation", SIMULATION_SCHEMA)
    if varied is not None:
        _same_instance(document, varied.instance_sha256, study, "study")
    if seen is not None:
        _same_instance(document, seen.instance_sha256, simulation, "simulation")
        _same_fleet(document, seen, simulation)
    return page(document, study=varied, simulation=seen)


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
