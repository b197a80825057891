"""The plan: what users hold after solving."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epd_opt.document import PlanDocument, Pool
from epd_opt.errors import InvalidInput, Problem
from epd_opt.held import Held
from epd_opt.instance import STAGES
from epd_opt.strict import document_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from epd_opt.explain import Explanation
    from epd_opt.export import Exported


class Plan(Held[PlanDocument]):
    """A deployment plan.

    Attributes
    ----------
    document : PlanDocument
        Everything there is to know of the plan, as in the JSON document.

    Examples
    --------
    >>> import epd_opt
    >>> plan = epd_opt.solve({"schema": "epd-opt/instance/v1", "candidates": {"modelled": False},
    ...     "workload": {"classes": [{"name": "chat", "rate_per_s": 9}]},
    ...     "devices": [{"sku": "A", "price": {"usd_per_hour": 2}}],
    ...     "workers": [{"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}]})
    >>> plan.status, plan.cost.usd_per_hour
    ('optimal', 6.0)
    """

    def to_dict(self) -> dict[str, Any]:
        """The plan document as plain data."""
        plain = super().to_dict()
        for key in ("infeasibility", "rate_multiple", "simulated", "scenarios", "robust", "hours"):
            if plain[key] is None:
                del plain[key]
        return plain

    @classmethod
    def load(cls, source: str | Path | Mapping[str, Any]) -> Plan:
        """Read a plan document.

        Raises
        ------
        InvalidInput
            The file is missing, not JSON, or not a plan.
        """
        if isinstance(source, Mapping):
            return cls(_validated(source, "plan"))
        return cls(_validated(document_of(source, "plan"), str(source)))

    def in_scenario(self, name: str) -> Plan:
        """A plan for several scenarios as it is in one of them: what runs there, and all of the fleet at the prices there.

        Raises
        ------
        UsageError
            The plan has no such scenario, or its targets are not met there.
        """
        from epd_opt.scenario_plan import in_scenario

        return Plan(in_scenario(self.document, name))

    def to_frame(self) -> pd.DataFrame:
        """Pools as a table, one row each, or one for each scenario that they run in; needs pandas
        (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        results = self.document.scenarios
        running = [(result, pool) for result in results or () for pool in result.pools]
        rows = [
            {
                **({} if result is None else {"scenario": result.name, "weight": result.weight}),
                "pool": pool.name,
                "placement": pool.placement,
                "device": pool.device,
                "replicas": pool.replicas,
                "devices": pool.devices,
                "usd_per_hour": pool.usd_per_hour,
                "binding": ", ".join(pool.binding),
                **{f"serves {name}": rate for name, rate in pool.serves.items()},
            }
            for result, pool in ([(None, pool) for pool in self.document.pools] if results is None else running)
        ]
        return pandas().DataFrame(rows)

    def plot(self) -> Figure:
        """Who goes where: classes, pools and flows; needs matplotlib (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.figures import plan_figure

        return plan_figure(self.document)

    def explain(
        self,
        *,
        why_not: Sequence[str] = (),
        without: Sequence[str] = (),
        share: float | str | None = None,
        runners_up: int = 3,
        time_limit_s: float | None = None,
    ) -> Explanation:
        """What binds, what the runner-up plans cost, and what was asked about; see :func:`epd_opt.explain.explain`."""
        from epd_opt.explain import explain

        return explain(self, why_not=why_not, without=without, share=share, runners_up=runners_up, time_limit_s=time_limit_s)

    def export(self, to: str, path: str | Path | None = None) -> Exported:
        """The fleet in another format, written to ``path`` where one is given; see :func:`epd_opt.export.export`.

        Raises
        ------
        UsageError
            The target is unknown or needs an absent package, the plan has no fleet, or the file cannot be written.
        """
        from epd_opt.export import export

        exported = export(self.document, to)
        if path is not None:
            exported.save(path)
        return exported

    def report(
        self,
        path: str | Path,
        *,
        study: str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]] | None = None,
        simulation: str | Path | Mapping[str, Any] | None = None,
    ) -> None:
        """Write the plan as one HTML page that needs no network and no script; see :func:`epd_opt.report.report_html`."""
        from epd_opt.report import report_html

        Path(path).write_text(report_html(self.document, study=study, simulation=simulation), encoding="utf-8")

    def _repr_html_(self) -> str:
        from epd_opt.render import plan_html

        return plan_html(self.document)

    def __repr__(self) -> str:
        cost = self.document.cost
        price = "" if cost is None else f", {cost.usd_per_hour:.2f} USD/h"
        return f"<Plan {self.document.instance!r}: {self.document.status}{price}, {len(self.document.pools)} pools>"

    def __str__(self) -> str:
        from epd_opt.render import plan_text

        return plan_text(self.document)


def _validated(content: Any, file: str) -> PlanDocument:
    from pydantic import ValidationError

    try:
        document = PlanDocument.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(
            [Problem(file=file, path=place, message=f"not an epd-opt/plan/v1 document: {first['msg']}")]
        ) from None
    problems = [Problem(file=file, path=path, message=message) for path, message in _disagreements(document)]
    if problems:
        raise InvalidInput(problems)
    return document


def _disagreements(document: PlanDocument) -> Iterator[tuple[str, str]]:
    """Where a document that was written by hand does not hang together."""
    known = {pool.name for pool in document.pools}
    for kind in ("devices", "performance"):
        if not isinstance(document.cards.get(kind, {}), Mapping):
            yield f"cards.{kind}", "expected a mapping from device entries to their cards"
    yield from _broken_pools(document.pools, "")
    for index, pool in enumerate(document.pools if document.scenarios is None else ()):
        for name in sorted(set(pool.serves) - set(document.classes)):
            yield f"classes.{name}", f"missing, though pool {pool.name!r} serves it"
        if pool.device not in document.devices:
            yield f"pools.{index}.device", f"the plan holds no units of {pool.device!r}"
    if document.pools and not isinstance(document.instance_document.get("workload"), Mapping):
        yield "instance_document", "the instance that the plan was made for is missing"
    for scenario in document.scenarios or ():
        runs = {pool.name for pool in scenario.pools}
        yield from _broken_pools(scenario.pools, f"scenarios.{scenario.name}.")
        for name, result in scenario.classes.items():
            for pool_name in sorted({passed for route in result.routes for passed in route.pools} - runs):
                yield f"scenarios.{scenario.name}.classes.{name}.routes", f"the scenario runs no pool {pool_name!r}"
    for name, result in document.classes.items():
        for pool_name in sorted({passed for route in result.routes for passed in route.pools} - known):
            yield f"classes.{name}.routes", f"the plan has no pool {pool_name!r}"


def _broken_pools(pools: Sequence[Pool], where: str) -> Iterator[tuple[str, str]]:
    for index, pool in enumerate(pools):
        place = f"{where}pools.{index}"
        if pool.replicas < 1:
            yield f"{place}.replicas", f"found {pool.replicas}, expected at least 1"
        if not pool.stages or not set(pool.stages) <= set(STAGES):
            yield f"{place}.stages", f"found {', '.join(pool.stages) or 'none'}, expected some of {', '.join(STAGES)}"
