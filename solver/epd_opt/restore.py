"""From a plan document back to what the plan was made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from epd_opt._version import __version__
from epd_opt.document import PlanDocument
from epd_opt.errors import InvalidInput
from epd_opt.instance import Instance
from epd_opt.offering import Offering, offering_at
from epd_opt.problem import PlanningProblem
from epd_opt.resolve import Resolved, resolve


def restored(
    document: PlanDocument, *, each: Callable[[], None] = lambda: None, planned: bool = False
) -> tuple[Resolved, Offering]:
    """The plan's instance as resolved, at the rates that the plan serves, and what was on offer for it.

    Where the plan chose a multiple of the demand, rates and mean rates are at that multiple.

    Parameters
    ----------
    each : callable
        Called again and again; may raise to end the work.
    planned : bool
        Whether pools that the plan does not use may be left out.
    """
    keys = [pool.key for pool in document.pools]

    def of_plan(outlines: PlanningProblem, _: Callable[[Collection[str]], PlanningProblem]) -> Collection[str]:
        names = [candidate.key for candidate in outlines.candidates]
        return [name for name in names if any(key == name or key.startswith(f"{name}|") for key in keys)]

    stated = stated_in(document)
    offered = offering_at(stated, document.points_for, each=each, screen=of_plan if planned else None)
    resolved = stated.at(document.multiple)
    return resolved, replace(offered, problem=replace(offered.problem, demands=resolved.demands))


def stated_in(document: PlanDocument) -> Resolved:
    """The instance of a plan, with the cards that it was made with.

    Raises
    ------
    InvalidInput
        They cannot be read: the plan was changed, or made by a version that wrote them in another way.
    """
    try:
        return resolve(Instance(**document.instance_document), cards=document.cards)
    except InvalidInput as error:
        made = document.provenance.epd_opt
        origin = "the plan was changed" if made == __version__ else f"epd-opt {made} made the plan, this is {__version__}"
        raise InvalidInput([replace(each, hint=f"{origin}: solve its instance again") for each in error.problems]) from None


def resolved_plan(document: PlanDocument) -> Resolved:
    """The same at the rates that the plan serves; raises as :func:`stated_in`."""
    return stated_in(document).at(document.multiple)
