"""The discrete-event twin of a planned fleet: the judge of every plan."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.plan import Plan
from epd_opt.restore import resolved_plan
from epd_opt.scenario_plan import demand_one_workload
from epd_opt.simulate.arrivals import Arrival, checked
from epd_opt.simulate.failures import Failure, parse_failure
from epd_opt.simulate.report import simulation_document
from epd_opt.simulate.router import Policy
from epd_opt.simulate.run import run
from epd_opt.simulate.simulation import Simulation
from epd_opt.simulate.soundness import demand_sound
from epd_opt.simulate.traces import Trace

__all__ = ["REQUESTS", "Arrival", "Failure", "Simulation", "simulate"]

REQUESTS = 20_000
"""Requests that count in a run where nothing else is asked for; a trace is taken whole."""


def simulate(
    plan: Plan | str | Path,
    *,
    trace: str | Path | Iterable[Arrival] | None = None,
    requests: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    routing: Policy = "least-loaded",
    failures: Sequence[Failure | str] = (),
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> Simulation:
    """Send requests through the fleet of a plan, one by one.

    Parameters
    ----------
    plan : Plan or path
        A plan with pools.
    trace : path, Trace or iterable of Arrival, optional
        Requests to send in place of those drawn from the plan's classes; files are read from their beginning more than
        once.
    requests : int, optional
        Requests that count in each run, `REQUESTS` where drawn; of a trace, how many are read.
    seed : int
        The same seed gives the same result.
    seeds : int
        Runs, with the seeds from ``seed`` on.
    routing : {"least-loaded", "round-robin", "random"}
        Rule by which a replica of a pool is chosen.
    failures : sequence
        What goes wrong, as `Failure` or as on the command line (``"A:1@60s+120s"``).
    progress : callable
        Called now and then with the requests sent and those to send.

    Raises
    ------
    InvalidInput
        The plan has no pools or is broken, or the trace makes no sense.
    UsageError
        A failure names no pool or device of the plan, or the plan is for several scenarios.

    Examples
    --------
    >>> import epd_opt
    >>> plan = epd_opt.solve({"schema": "epd-opt/instance/v1", "candidates": {"modelled": False},
    ...     "workload": {"classes": [{"name": "chat", "rate_per_s": 9}]},
    ...     "devices": [{"sku": "A", "price": {"usd_per_hour": 2}}],
    ...     "workers": [{"name": "w", "sku": "A", "devices": 1, "stages": ["prefill", "decode"], "max_rate_per_s": 4}]})
    >>> epd_opt.simulate(plan, requests=500).target_met
    True
    """
    plan = plan if isinstance(plan, Plan) else Plan.load(plan)
    document = plan.document
    demand_one_workload(document)
    if not document.pools:
        found = f"the plan is {document.status} and has no pools"
        raise InvalidInput([Problem(path="pools", message=found, hint="there is nothing to simulate")])
    resolved = resolved_plan(document)
    demand_sound(document, resolved)
    planned = [failure if isinstance(failure, Failure) else parse_failure(failure) for failure in failures]
    arrivals, source, notes = _opened(trace)
    count = (REQUESTS if trace is None else 2**62) if requests is None else requests
    whole = seeds * (REQUESTS if requests is None else requests)
    chosen = range(seed, seed + seeds)
    runs = []
    with _no_search_for_cycles():
        for number, each in enumerate(chosen):
            runs.append(
                run(
                    document,
                    resolved,
                    requests=count,
                    seed=each,
                    trace=arrivals,
                    policy=routing,
                    failures=planned,
                    progress=lambda done, number=number: progress(number * whole // seeds + done, whole),  # type: ignore[misc]
                )
            )
    report = simulation_document(
        document,
        resolved,
        runs,
        seeds=list(chosen),
        arrivals=source,
        replayed=trace is not None,
        routing=routing,
        failures=planned,
        notes=notes(),
    )
    return Simulation(report, runs)


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Runs make a great many objects and no cycles among them; to look for some takes a seventh of the time."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def _opened(
    trace: str | Path | Iterable[Arrival] | None,
) -> tuple[Iterable[Arrival] | None, str, Callable[[], list[str]]]:
    """Arrivals that can be read from their beginning, where they come from, and what is to be said of them afterwards."""
    if trace is None:
        return None, "drawn from the classes of the plan", list
    if isinstance(trace, str | Path):
        trace = Trace(source=trace)
    if isinstance(trace, Trace):
        if str(trace.source) == "-":
            raise UsageError("a trace is read more than once: give a file in place of -")
        return trace, f"trace {Path(trace.source).name}", trace.notes
    return checked(trace), "requests given in Python", list
