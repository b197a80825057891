"""Terms of ownership and currencies."""

from __future__ import annotations

from epd_models import catalog
from epd_models.provenance import Confidence
from epd_models.tariff import CostRules
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.prices import stale, usd
from epd_opt.resolve.resolved import Assumption


def cost_rules(instance: user.Instance) -> tuple[CostRules, list[Assumption]]:
    """Ownership constants: the instance's, else the catalogue's typical ones, listed as assumptions where they act."""
    constants = catalog.tariff()
    accelerators = constants["accelerator_share_of_capex"]
    host = constants["host_cpu_memory_storage_share_of_capex"]
    network = constants["network_share_of_capex"]
    assert accelerators.typical
    assert host.typical
    assert network.typical
    defaults = {
        "life_years": (constants["depreciation_years"].typical, "years", constants["depreciation_years"]),
        "residual": (0.0, "share of the purchase price", None),
        "cost_of_capital": (constants["cost_of_capital"].typical, "per year", constants["cost_of_capital"]),
        "host_share": ((host.typical + network.typical) / accelerators.typical, "share of the purchase price", host),
        "hours_per_year": (8760.0, "h", None),
        "pue": (constants["pue"].typical, "ratio", constants["pue"]),
        "electricity_usd_per_kwh": (
            constants["electricity_industrial"].typical,
            "USD/kWh",
            constants["electricity_industrial"],
        ),
    }
    values: dict[str, float] = {}
    assumptions = []
    owns = any(e.owned or (e.price is not None and e.price.is_purchase) for e in instance.devices)
    reserves = any(e.price is not None and e.price.reserved is not None for e in instance.devices)
    for name, (default, unit, constant) in defaults.items():
        stated = getattr(instance.cost, name)
        assert default is not None
        values[name] = default if stated is None else usd(stated, instance)
        if stated is None and (owns or (reserves and name in ("cost_of_capital", "hours_per_year"))):
            assumptions.append(
                Assumption(
                    text=f"cost.{name}",
                    value=round(default, 6),
                    unit=unit,
                    source=constant.source if constant else "convention of this program",
                    confidence=constant.confidence.label if constant else "estimate",
                )
            )
    for code, rate in (instance.currencies or {}).items():
        dated = f", {rate.date}" if rate.date else ""
        assumptions.append(
            Assumption(
                text=format_path(["currencies", code]),
                value=rate.usd_per_unit,
                unit=f"USD/{code}",
                source=rate.source + dated,
                confidence=Confidence.USER.label,
            )
        )
    return CostRules(
        **values, colocation_usd_per_kw_month=usd(instance.cost.colocation_usd_per_kw_month or 0.0, instance)
    ), assumptions


def stale_rates(instance: user.Instance) -> list[str]:
    rates = (instance.currencies or {}).items()
    return [text for code, rate in rates for text in stale(f"the rate of {code}", rate.date or "", instance)]
