"""From a plan document back to what the plan was made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from epd_opt.document import PlanDocument
from epd_opt.instance import Instance
from epd_opt.offering import Offering, offering_at
from epd_opt.resolve import Resolved, resolve


def restored(document: PlanDocument, *, each: Callable[[], None] = lambda: None) -> tuple[Resolved, Offering]:
    """The plan's instance as resolved, at the rates that the plan serves, and all that was on offer for it.

    Where the plan chose a multiple of the demand, rates and mean rates are at that multiple. ``each`` is called again and
    again, and may raise to end the work.
    """
    stated = resolve(Instance(**document.instance_document), cards=document.cards)
    offered = offering_at(stated, document.points_for, each=each)
    resolved = stated.at(document.multiple)
    return resolved, replace(offered, problem=replace(offered.problem, demands=resolved.demands))
