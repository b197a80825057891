"""What can be asked only where the rates to serve are given."""

from __future__ import annotations

from epd_opt.errors import InvalidInput, Problem
from epd_opt.instance import Instance
from epd_opt.scenarios import demand_one_case


def at_given_rates(instance: Instance, what: str) -> None:
    """Refuse scenarios, which have several, and objectives that choose the rates.

    Raises
    ------
    InvalidInput
        With the reason and the way out.
    UsageError
        The instance has scenarios.
    """
    demand_one_case(instance, what)
    if instance.objective == "cost_per_request":
        return
    found = instance.objective if isinstance(instance.objective, str) else "a range of multiples"
    hint = f"{what} compares fleets at given rates: use --set objective=cost_per_request"
    message = f"found {found}, expected cost_per_request"
    raise InvalidInput([Problem(path="objective", message=message, hint=hint)])
