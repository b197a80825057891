"""`epd-opt sensitivity` and `epd-opt tolerance`."""

from __future__ import annotations

from pathlib import Path

import click

import epd_opt
from epd_opt.cli.numbers import Finite
from epd_opt.cli.plans import CASE, SCENARIO, load_plan
from epd_opt.cli.side_by_side import DASK, WORKERS, side_by_side
from epd_opt.cli.terminal import bar, echo_json, wants_color, width
from epd_opt.errors import UsageError
from epd_opt.render import WIDTH
from epd_opt.scenarios import one_case
from epd_opt.sensitivity import Study, parse_vary, sensitivity, tolerance
from epd_opt.sensitivity.view import study_text, tolerance_text
from epd_opt.wording import printable


@click.command(name="sensitivity")
@click.argument("instance", type=click.Path(allow_dash=True))
@click.option("--vary", multiple=True, required=True, metavar="PATH=LOW:HIGH[:STEPS]", help="What moves; also PATH=A,B,C.")
@click.option("--plan", metavar="PLAN", help="Plan whose fleet is today's; else the instance's own best plan.")
@click.option("--json", "as_json", is_flag=True, help="Print the study as JSON instead of the tables.")
@click.option("-o", "--output", metavar="DIR", help="Folder for points.jsonl, a line each as they come, and study.json.")
@WORKERS
@DASK
@click.option("--no-switches", is_flag=True, help="Do not look for the values at which the plan changes.")
@click.option(
    "--tolerance",
    "width_share",
    type=Finite(min=0, min_open=True, max=1),
    default=0.001,
    show_default=True,
    metavar="T",
    help="Share of the range within which such a value is found.",
)
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="Override a value of the instance.")
@CASE
@click.option("-q", "--quiet", is_flag=True, help="No notes and no progress on standard error.")
def sensitivity_command(
    instance: str,
    vary: tuple[str, ...],
    plan: str | None,
    as_json: bool,
    output: str | None,
    workers: int | None,
    dask: str | None,
    no_switches: bool,
    width_share: float,
    settings: tuple[str, ...],
    scenario: str | None,
    quiet: bool,
) -> int:
    """Plan INSTANCE again as inputs move, and say what keeping today's fleet costs.

    One or two --vary. A leading x scales what the instance states: --vary 'workload.classes.*.rate_per_s=x0.5:x2:7'.
    A range without STEPS has 7 points. With -o, a study that was interrupted goes on where it stopped.

    \b
    Exit codes: 0 every point is solved, proved to its plan or to having none; 4 no point has a plan;
    5 some point is not proved, was stopped by its time limit, or failed.
    """
    if instance == "-" and plan == "-":
        raise UsageError("sensitivity: standard input can be read once")
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise UsageError(f"-o {output}: expected a folder, and this is a file")
    read = one_case(epd_opt.read(instance, overrides=list(settings)), scenario)
    document = read.document()
    moved = [parse_vary(text, document) for text in vary]
    processes, executor = side_by_side(read.solver.threads, workers, dask)
    with bar("points", quiet=quiet) as advance:
        study = sensitivity(
            read,
            moved,
            plan=None if plan is None else load_plan(plan),
            switches=not no_switches,
            tolerance=width_share,
            workers=processes,
            executor=executor,
            folder=output,
            progress=advance,
        )
    if output is not None:
        _save(study, Path(output) / "study.json")
    if as_json:
        echo_json(study.to_json())
        if not quiet:
            for note in study.document.notes:
                click.echo(f"note: {printable(note)}", err=True)
    else:
        click.echo(study_text(study.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return exit_code([point.status for point in study.document.points])


def exit_code(statuses: list[str]) -> int:
    """How a study ends."""
    if all(status == "infeasible" for status in statuses):
        return 4
    return 0 if all(status in ("optimal", "infeasible") for status in statuses) else 5


def _save(study: Study, path: Path) -> None:
    try:
        study.save(path)
    except OSError as error:
        raise UsageError(f"-o {path}: cannot write: {error.strerror}") from None


@click.command(name="tolerance")
@click.argument("plan", type=click.Path(allow_dash=True))
@click.option("--json", "as_json", is_flag=True, help="Print the tolerances as JSON instead of the table.")
@WORKERS
@SCENARIO
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def tolerance_command(plan: str, as_json: bool, workers: int | None, scenario: str | None, quiet: bool) -> int:
    """Say how far each input may move before the bought fleet breaks a target.

    PLAN is a plan document, or - for standard input, and needs nothing else. Every class's rate, text, output and images
    move by themselves, and all rates together; the fleet keeps its replicas, routing and operating points are free.
    """
    loaded = load_plan(plan)
    processes, _ = side_by_side(loaded.document.provenance.threads, workers, None)
    with bar("inputs", quiet=quiet) as advance:
        report = tolerance(loaded, scenario=scenario, workers=processes, progress=advance)
    if as_json:
        echo_json(report.to_json())
    else:
        click.echo(tolerance_text(report.document, color=wants_color(), width=width(WIDTH)), nl=False)
    return 0
