"""The ways of dividing stages over pools."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from epd_models.placement import PLACEMENTS
from epd_opt.fields import complaint, no_repeats, shown


def _placement(value: object) -> object:
    if isinstance(value, str) and value not in PLACEMENTS:
        near = get_close_matches(value.lower(), PLACEMENTS, n=1)
        raise complaint(
            f"found {shown(value)}, expected {' or '.join(PLACEMENTS)}", f"did you mean {near[0]}?" if near else ""
        )
    return value


def _in_placement_order(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(placement for placement in PLACEMENTS if placement in no_repeats(values))


Placement = Annotated[str, Field(json_schema_extra={"enum": list(PLACEMENTS)}), BeforeValidator(_placement)]
Placements = Annotated[tuple[Placement, ...], Field(min_length=1), AfterValidator(_in_placement_order)]
