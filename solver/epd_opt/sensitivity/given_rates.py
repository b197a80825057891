"""What can be asked only where the rates to serve are given."""

from __future__ import annotations

from epd_opt.errors import InvalidInput, Problem
from epd_opt.instance import Instance


def at_given_rates(instance: Instance, what: str) -> None:
    """Refuse objectives that choose the rates.

    Raises
    ------
    InvalidInput
        With the reason and the way out.
    """
    if instance.objective == "cost_per_request":
        return
    found = instance.objective if isinstance(instance.objective, str) else "a range of multiples"
    hint = f"{what} compares fleets at given rates: use --set objective=cost_per_request"
    message = f"found {found}, expected cost_per_request"
    raise InvalidInput([Problem(path="objective", message=message, hint=hint)])
