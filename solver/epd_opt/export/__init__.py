"""Plans in the formats of other programs. One target a file, one line each in :data:`EXPORTERS`."""

from __future__ import annotations

from difflib import get_close_matches

from epd_opt.consistent import demand_consistent
from epd_opt.document import PlanDocument
from epd_opt.errors import UsageError
from epd_opt.export.exported import Exported
from epd_opt.export.table import BILLS, BINARY, EXPORTERS
from epd_opt.scenario_plan import demand_one_workload

__all__ = ["BINARY", "EXPORTERS", "Exported", "export"]


def export(document: PlanDocument, to: str) -> Exported:
    """The fleet of a plan in another format.

    Parameters
    ----------
    to : str
        One of :data:`EXPORTERS`.

    Raises
    ------
    InvalidInput
        A bill is wanted, and the plan was changed by hand and does not add up any more.
    UsageError
        The target is unknown or needs a package that is absent, the plan has no fleet, or it is for several scenarios or
        for demand by the hour and the target is no bill.
    """
    if to not in EXPORTERS:
        near = get_close_matches(to, EXPORTERS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"found {to!r}, expected one of {', '.join(EXPORTERS)}{hint}")
    if document.cost is None:
        raise UsageError(f"the plan of {document.instance!r} is {document.status}: there is no fleet to export")
    if to in BILLS:
        demand_consistent(document)
    else:
        demand_one_workload(document)
    return EXPORTERS[to](document)
