"""The page of an instance that nothing serves: why, and what would change that."""

from __future__ import annotations

import json
from collections.abc import Sequence

from epd_opt.document import Infeasibility, Mend, Reason
from epd_opt.report.markup import Child, Markup, element, joined, number, paragraph, table
from epd_opt.wording import money, significant


def reasons(why: Infeasibility) -> Markup:
    """Every limit that stands in the way."""
    rows = [_reason(i, reason) for i, reason in enumerate(why.reasons)]
    return table("Reasons", ["Limit", "Class", ">Wanted", ">Best within reach", "In words"], rows)


def _reason(index: int, reason: Reason) -> Sequence[Child]:
    path = ("infeasibility", "reasons", index)
    bounds: list[Child] = []
    for key, value in (("wanted", reason.wanted), ("best_reachable", reason.best_reachable)):
        bounds.append("–" if value is None else number(significant(value), value, *path, key))
    return [element("code", reason.limit), reason.request_class or "–", *bounds, element("span", reason.text, class_="name")]


def mends(why: Infeasibility) -> Markup:
    """The changes after which there is a plan, with what to type."""
    parts: list[Child] = []
    if why.mends:
        parts += [paragraph("Each of these is enough alone; the cheapest plan first."), _mends(why.mends, "mends")]
    if why.together:
        opening = "Or all of these together:" if why.mends else "No change is enough alone; all of these together are:"
        parts += [paragraph(opening), _mends(why.together, "together")]
    if not parts:
        parts.append(paragraph("No change of a single limit was found after which there is a plan."))
    if why.note:
        parts.append(paragraph(why.note, class_="small"))
    return joined(*parts)


def _mends(found: Sequence[Mend], key: str) -> Markup:
    items = []
    for i, mend in enumerate(found):
        cost: Child = None
        if mend.usd_per_hour is not None:
            usd = number(money(mend.usd_per_hour), mend.usd_per_hour, "infeasibility", key, i, "usd_per_hour")
            cost = [", the plan then costs ", usd, " per hour"]
        setting = f"--set '{mend.change}={json.dumps(mend.to, ensure_ascii=False)}'"
        items.append(
            element("li", element("strong", mend.text or mend.change), cost, element("br"), element("code", setting))
        )
    return element("ol", items, class_="mends")
