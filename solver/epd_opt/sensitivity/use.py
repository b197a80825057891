"""What a break-even is asked of: the use of a placement, a device or a stage, or of several of them together."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import pulp

from epd_models.candidate import STAGES, Candidate
from epd_models.placement import PLACEMENTS
from epd_opt.errors import UsageError
from epd_opt.formulation import Question
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables
from epd_opt.instance import Instance

LEAST_SHARE = 1e-4
"""Share of a class that counts as use; far less than any replica of a fleet that is worth planning takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Pools of a placement, on a device (entry name or SKU), that run a stage; what is None may be any."""

    placement: str | None = None
    device: str | None = None
    stage: str | None = None

    def means(self, candidate: Candidate) -> bool:
        """Whether a candidate is such a pool."""
        return (
            self.placement in (None, candidate.placement)
            and self.device in (None, candidate.device, candidate.sku)
            and (self.stage is None or self.stage in candidate.stages)
        )

    def __str__(self) -> str:
        """In words.

        >>> print(Use(device="L4", stage="encode")), print(Use(placement="encoder_pool"))
        encode on L4
        encoder_pool
        (None, None)
        """
        what = self.placement or self.stage or ""
        if self.placement and self.stage:
            what = f"{self.stage} in {self.placement}"
        return what if self.device is None else f"{what} on {self.device}" if what else self.device

    def question(self) -> Question:
        """``used``: the pools take :data:`LEAST_SHARE` of some class at least."""

        def rows(_: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
            through = [variable for (k, _), variable in v.share.items() if self.means(sets.candidates[k])]
            yield "used", -pulp.lpSum(through) <= -LEAST_SHARE

        return Question(rows=rows, favours=self.means)


def use_of(instance: Instance, *, placement: str | None, device: str | None, stage: str | None) -> Use:
    """A use, its names checked.

    Raises
    ------
    UsageError
        Nothing is named, or a name is unknown; the nearest names are given.
    """
    if placement is None and device is None and stage is None:
        raise UsageError("break-even: expected what is to pay: a placement, a SKU or a stage (--placement, --sku, --stage)")
    devices = list(dict.fromkeys(name for entry in instance.devices for name in (entry.name, entry.sku)))
    for option, name, known in (
        ("placement", placement, list(PLACEMENTS)),
        ("sku", device, devices),
        ("stage", stage, list(STAGES)),
    ):
        if name is not None and name not in known:
            near = get_close_matches(name, known, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
            raise UsageError(f"--{option} {name}: not one of this instance ({hint})")
    return Use(placement=placement, device=device, stage=stage)
