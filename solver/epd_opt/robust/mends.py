"""Mends of limits that all scenarios share: values after which one fleet serves them, each of them tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from epd_opt import document as doc
from epd_opt.document import PlanDocument
from epd_opt.instance import Instance
from epd_opt.mending.ladder import on_rung, rung_above
from epd_opt.paths import set_value

_WHOLE = 1e-6
"""What a whole number of units may be exceeded by because of arithmetic alone."""
_TRIES = 3
"""Values that are tried of one limit, each a rung or a unit above the one before."""


def with_mends(
    why: doc.Infeasibility,
    raised: Sequence[tuple[str, float]],
    instance: Instance,
    plan: Callable[[Instance], PlanDocument | None],
) -> doc.Infeasibility:
    """Reasons with the limits that were found to be enough alone, where a plan was made with each; cheapest plan first.

    Parameters
    ----------
    raised : sequence of (str, float)
        Paths of limits, and what each would have to be at the least.
    plan : callable
        Plans an instance; None where there is no time.
    """
    mends: list[doc.Mend] = []
    note = why.note
    for path, least in raised:
        for to in _values(path, least):
            changed = Instance(**set_value(instance.document(), path, to))
            found = plan(changed)
            if found is None:
                note = " ".join(["There was no time to try all limits.", why.note])
                break
            if found.cost is not None and found.pools:
                text = f"raise {path} to {to:g}"
                mends.append(doc.Mend(change=path, to=to, text=text, usd_per_hour=found.cost.usd_per_hour))
                break
    mends.sort(key=lambda mend: (mend.usd_per_hour or 0.0, mend.change))
    return why.model_copy(update={"mends": mends, "note": note})


def _values(path: str, least: float) -> list[int | float]:
    """What a limit is raised to: whole units, or numbers as people type them."""
    if path in ("limits.usd_per_hour", "limits.power_kw"):
        return [on_rung(rung_above(least) + i) for i in range(_TRIES)] if least > 0.0 else []
    return [math.ceil(least - _WHOLE) + i for i in range(_TRIES)]
