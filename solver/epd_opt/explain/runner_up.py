"""Runner-up plans: the cheapest of other structures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pulp

from epd_opt.explain.document import Alternative
from epd_opt.explain.ground import Ground, Uses, uses
from epd_opt.formulation import Question
from epd_opt.formulation.constraints import Rows
from epd_opt.formulation.sets import Sets
from epd_opt.formulation.variables import Variables


def other_structures(ground: Ground, count: int, share: Callable[[], float]) -> Iterator[Alternative]:
    """The cheapest plans that differ in structure from this one and from each other, up to ``count`` of them.

    The structure of a plan is the set of its (placement, SKU) pairs. Every runner-up leaves out at least one pair of
    each plan before it: the same pools with another one beside them are not another structure. The last one may say
    that there are no more, or that the time did not suffice to find one.
    """
    if not ground.uses:
        return
    before = [ground.uses]
    for number in range(count):
        ground.say(f"runner-up {number + 1}")
        plan = ground.ask(unlike(before), share=share())
        yield ground.alternative(plan, none="no further structure serves the workload")
        if plan.document.cost is None:
            return
        before.append(uses(plan.document))


def unlike(before: Sequence[Uses]) -> Question:
    """``unlike_i``: of every earlier structure at least one (placement, SKU) pair stays closed; ``in_i_j_k``: a pair is
    open when one of its candidates is."""

    def rows(model: pulp.LpProblem, sets: Sets, v: Variables) -> Rows:
        for i, structure in enumerate(before):
            present = []
            for j, pair in enumerate(sorted(structure)):
                indicator = model.add_variable(f"s_{i}_{j}", 0, 1, cat=pulp.LpInteger)
                present.append(indicator)
                for k, candidate in enumerate(sets.candidates):
                    if (candidate.placement, candidate.sku) == pair:
                        yield f"in_{i}_{j}_{k}", v.open[k] <= indicator
            yield f"unlike_{i}", pulp.lpSum(present) <= len(structure) - 1

    return Question(rows=rows)
