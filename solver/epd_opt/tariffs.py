"""Tariffs side by side: what a unit of every device entry costs, and the fleet of a plan at each of them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epd_opt.document import PlanDocument, Tariff, UnitCost
from epd_opt.economics import tariffs, unpriced
from epd_opt.instance import Instance
from epd_opt.render import WIDTH, view_text
from epd_opt.resolve import resolve
from epd_opt.tables import ruled
from epd_opt.wording import money, printable, significant

TARIFFS_SCHEMA = "epd-opt/tariffs/v1"
BASES = {"rent": "by the hour", "spot": "spot", "reserved": "reserved", "purchase": "purchase"}


class TariffDocument(BaseModel):
    """Tariffs of an instance or a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["epd-opt/tariffs/v1"] = Field(default="epd-opt/tariffs/v1", alias="schema")
    instance: str = Field(description="Name of the instance.")
    unit_costs: list[UnitCost] = Field(description="Cost of the plan's fleet per unit of service; empty without a plan.")
    tariffs: list[Tariff] = Field(description="Every priced device entry.")
    unpriced: list[str] = Field(description="Device entries without a price.")
    warnings: list[str] = Field(description="What the instance leaves open, old prices among it.")


def tariff_document(given: PlanDocument | Instance) -> TariffDocument:
    """The tariffs of an instance, or of a plan with what its fleet costs at each.

    Raises
    ------
    InvalidInput
        The instance makes no sense.
    """
    if isinstance(given, PlanDocument):
        resolved = resolve(Instance(**given.instance_document), cards=given.cards)
        return TariffDocument(
            instance=given.instance,
            unit_costs=given.unit_costs,
            tariffs=given.tariffs or tariffs(resolved, {}, {}),
            unpriced=unpriced(resolved),
            warnings=given.warnings,
        )
    with given.placing():
        resolved = resolve(given)
    return TariffDocument(
        instance=given.name,
        unit_costs=[],
        tariffs=tariffs(resolved, {}, {}),
        unpriced=unpriced(resolved),
        warnings=list(resolved.warnings),
    )


def tariffs_text(document: TariffDocument, *, color: bool = False, width: int = WIDTH) -> str:
    """The tables as text."""
    return view_text(_view(document), color=color, width=width)


def _view(document: TariffDocument) -> RenderableType:
    parts: list[RenderableType] = [Text(f"{printable(document.instance)}: one unit in use", style="bold")]
    table = ruled(
        "device", "paid", ">price", "dated", ">$/h\nfull", ">$/h\nidle", ">$/h\nbilled", ">$/month", ">at the\nstart"
    )
    for row in document.tariffs:
        table.add_row(
            Text(printable(row.device), style="cyan"),
            BASES[row.basis],
            money(row.price) + ("" if row.basis == "purchase" else "/h"),
            row.price_date or "-",
            f"{row.usd_per_hour:,.4f}",
            f"{row.idle_usd_per_hour:,.4f}",
            f"{row.billed_usd_per_hour:,.4f}",
            money(row.usd_per_month),
            money(row.upfront_usd) if row.upfront_usd else "-",
        )
    parts.append(Padding(table, (1, 0, 0, 0), expand=False))
    if document.unpriced:
        parts.append(Text(f"without a price: {', '.join(printable(name) for name in document.unpriced)}"))
    if document.unit_costs:
        parts += _fleet(document)
    parts += [Text(f"warning: {printable(warning)}", style="yellow") for warning in document.warnings]
    return Group(*parts)


def _fleet(document: TariffDocument) -> list[RenderableType]:
    whole = ruled("the plan's cost", ">$", "divided by")
    for cost in document.unit_costs:
        count = "not stated: " if cost.per_hour is None else f"{significant(cost.per_hour)} an hour: "
        whole.add_row(f"per {cost.unit.replace('_', ' ')}", money(cost.usd).removeprefix("$"), count + cost.denominator)
    rows = ruled(
        "its units at", "paid", ">units", ">$/h", ">$/request", ">$/image", ">$/M input\ntokens", ">$/M output\ntokens"
    )
    for row in document.tariffs:
        if row.fleet_units:
            each = (
                row.usd_per_request,
                row.usd_per_image,
                row.usd_per_million_input_tokens,
                row.usd_per_million_output_tokens,
            )
            rows.add_row(
                Text(printable(row.device), style="cyan"),
                BASES[row.basis],
                f"{row.fleet_units}",
                money(row.fleet_usd_per_hour).removeprefix("$"),
                *(money(usd).removeprefix("$") for usd in each),
            )
    tables = [whole, rows] if rows.row_count else [whole]
    return [Padding(table, (1, 0, 0, 0), expand=False) for table in tables]


def tariff_json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of tariff documents."""
    schema = TariffDocument.model_json_schema(by_alias=True, mode="serialization")
    schema["required"] = sorted({*schema["required"], "schema"})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": TARIFFS_SCHEMA, **schema}
