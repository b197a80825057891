"""A finished simulation: what users hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from epd_opt.held import Held
from epd_opt.simulate.document import SimulationDocument
from epd_opt.simulate.run import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Simulation(Held[SimulationDocument]):
    """What a fleet did with the requests that were sent to it.

    Attributes
    ----------
    document : SimulationDocument
        The report, as in the JSON document; its fields are attributes of the simulation too.
    runs : tuple of Run
        Times of every request that counts, for further questions.
    """

    def __init__(self, document: SimulationDocument, runs: Sequence[Run]) -> None:
        super().__init__(document)
        self.runs = tuple(runs)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        plain = super().to_dict()
        for outcome in plain["classes"].values():
            for key in ("phases", "traffic"):
                if outcome[key] is None:
                    del outcome[key]
        return plain

    def to_frame(self) -> pd.DataFrame:
        """Classes as a table, one row each; needs pandas (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.extras import pandas

        rows = [
            {
                "class": name,
                "requests": outcome.requests,
                **{f"ttft_ms_{key}": value for key, value in outcome.ttft_ms.model_dump().items()},
                **{f"itl_ms_{key}": value for key, value in outcome.itl_ms.model_dump().items()},
                **{f"attainment_{key}": value for key, value in outcome.attainment.model_dump().items()},
                "target_met": outcome.target_met,
            }
            for name, outcome in self.document.classes.items()
        ]
        return pandas().DataFrame(rows)

    def plot(self) -> Figure:
        """Times of each class, and pools over time; needs matplotlib (``pip install 'epd-opt[plot]'``)."""
        from epd_opt.simulate.figure import simulation_figure

        return simulation_figure(self.document, self.runs)

    def __repr__(self) -> str:
        from epd_opt.simulate.table import verdict

        return f"<Simulation of {self.document.instance!r}: {verdict(self.document)}>"

    def __str__(self) -> str:
        from epd_opt.simulate.table import simulation_text

        return simulation_text(self.document)
