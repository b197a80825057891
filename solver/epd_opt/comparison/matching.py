"""Which pool of one plan is which pool of another."""

from __future__ import annotations

from collections.abc import Sequence

from epd_opt.document import Pool

Row = list[Pool | None]


def matched(plans: Sequence[Sequence[Pool]]) -> list[Row]:
    """Rows of pools, one place per plan.

    Pools share a row where placement and SKU agree. Where several do, those go together that also share device entry,
    parallelism and operating point, in this order of weight; what is left over is paired in the order of the plans.
    """
    rows: list[Row] = []
    for index, pools in enumerate(plans):
        offers = sorted(
            (-_likeness(row, pool), r, p)
            for r, row in enumerate(rows)
            for p, pool in enumerate(pools)
            if _last(row).placement == pool.placement and _last(row).sku == pool.sku
        )
        taken: dict[int, int] = {}
        for _, r, p in offers:
            if r not in taken.values() and p not in taken:
                taken[p] = r
        for row in rows:
            row.append(None)
        for p, pool in enumerate(pools):
            if p in taken:
                rows[taken[p]][index] = pool
            else:
                rows.append([*[None] * index, pool])
    return sorted(rows, key=lambda row: next(i for i, pool in enumerate(row) if pool is not None))


def _last(row: Row) -> Pool:
    return next(pool for pool in reversed(row) if pool is not None)


def _likeness(row: Row, pool: Pool) -> int:
    known = _last(row)
    return 4 * (known.device == pool.device) + 2 * (known.parallelism == pool.parallelism) + (known.key == pool.key)
