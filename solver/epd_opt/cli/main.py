"""The `epd-opt` command and how every run ends."""

from __future__ import annotations

import io
import os
import sys
import traceback

import click

from epd_opt._version import __version__
from epd_opt.cli.calibrating import calibrate
from epd_opt.cli.catalog import catalog
from epd_opt.cli.comparing import compare_command
from epd_opt.cli.explaining import explain_command
from epd_opt.cli.exporting import export_command
from epd_opt.cli.fitting import fit_workload
from epd_opt.cli.instances import init, schema, validate
from epd_opt.cli.moving import break_even_command, marginal_command, tornado_command
from epd_opt.cli.predicting import predict
from epd_opt.cli.reporting import report_command
from epd_opt.cli.simulating import simulate_command
from epd_opt.cli.solvers import solvers
from epd_opt.cli.solving import solve
from epd_opt.cli.studying import sensitivity_command, tolerance_command
from epd_opt.cli.tariffs import tariffs_command
from epd_opt.errors import EpdError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="epd-opt")
def cli() -> None:
    """Plan fleets that serve multimodal language models.

    Reads what is to be served, on which devices and at which prices; answers which devices, how many, cut how and
    serving whom cost least per request while TTFT and ITL targets hold, and proves it.

    \b
    Exit codes: 0 proved within the gap, 1 fault of this program, 2 wrong usage, 3 invalid input,
    4 infeasible, 5 a plan that is not proved, 6 stopped without a plan, 7 a threshold is breached.
    """


for command in (
    init,
    validate,
    solve,
    explain_command,
    tariffs_command,
    compare_command,
    sensitivity_command,
    tolerance_command,
    break_even_command,
    tornado_command,
    marginal_command,
    simulate_command,
    report_command,
    export_command,
    fit_workload,
    predict,
    calibrate,
    catalog,
    schema,
    solvers,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; every error of this program becomes its exit code and a sentence on standard error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    try:
        code: int | None = cli.main(prog_name="epd-opt", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 6
    except click.ClickException as error:
        error.show()
        return 2
    except EpdError as error:
        click.echo(str(error), err=True)
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader of the pipe has gone, which click turns into an exit of its own: nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception:
        traceback.print_exc()
        click.echo("epd-opt: this is a fault of the program; please report it with the lines above", err=True)
        return 1
    return code or 0
