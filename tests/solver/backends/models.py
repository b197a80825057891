"""Small models to solve, and hard ones to be stopped at."""

from __future__ import annotations

from collections.abc import Sequence

import pulp


def model_of(
    variables: Sequence[tuple[str, float | None, float | None, bool]],
    cost: dict[str, float],
    rows: Sequence[tuple[dict[str, float], str, float]],
) -> pulp.LpProblem:
    """A minimisation: (name, lower, upper, whole), costs by name, and rows as (coefficients by name, sense, right side)."""
    model = pulp.LpProblem("sample", pulp.LpMinimize)
    x = {
        name: model.add_variable(name, lower, upper, cat=pulp.LpInteger if whole else pulp.LpContinuous)
        for name, lower, upper, whole in variables
    }
    model.setObjective(pulp.LpAffineExpression([(x[name], value) for name, value in cost.items()]))
    senses = {"<=": pulp.LpConstraintLE, "==": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}
    for r, (terms, sense, right) in enumerate(rows):
        left = pulp.LpAffineExpression([(x[name], value) for name, value in terms.items()])
        model.addConstraint(pulp.LpConstraint(left, senses[sense], f"row{r}", right))
    return model


def cover(items: int, *, share: float = 0.5) -> pulp.LpProblem:
    """A hard integer programme: cover a share of uneven weights at uneven costs, on many rows."""
    names = [f"x{i}" for i in range(items)]
    rows = []
    for r in range(items // 2):
        weights = {name: float(1 + (i * 53 + r * 29) % 97) for i, name in enumerate(names)}
        rows.append((weights, ">=", share * sum(weights.values())))
    cost = {name: float(100 + (i * 37) % 61) for i, name in enumerate(names)}
    return model_of([(name, 0, 1, True) for name in names], cost, rows)


def market_split(rows: int) -> pulp.LpProblem:
    """Equality knapsacks without a solution that no solver can refute in seconds: no incumbent will be found."""
    names = [f"x{i}" for i in range(10 * (rows - 1))]
    equations = []
    state = 12345
    for _ in range(rows):
        weights = {}
        for name in names:
            state = (1103515245 * state + 12345) % 2**31
            weights[name] = float(state // 65536 % 100)
        equations.append((weights, "==", float(sum(weights.values()) // 2)))
    return model_of([(name, 0, 1, True) for name in names], {names[0]: 1.0}, equations)
