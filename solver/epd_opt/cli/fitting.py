"""`epd-opt fit-workload`."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, time
from pathlib import Path

import click

import epd_opt
from epd_opt.cli.numbers import Finite
from epd_opt.cli.output import check_output, write_text
from epd_opt.cli.terminal import progress
from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.fitting.day import DAY_S, clock
from epd_opt.fitting.fit import Fit, Settings, fit
from epd_opt.fitting.sample import Sample
from epd_opt.fitting.write import instance_text, workload_text
from epd_opt.hours import named
from epd_opt.simulate.trace_formats import FORMATS, TIME_UNITS, TimeUnit
from epd_opt.simulate.traces import Trace, merged
from epd_opt.simulate.traffic import CLUSTER_S
from epd_opt.wording import printable

_CLUSTERED = 2.0
"""Counts that vary this many times as much as the gaps say are worth a warning."""


class _Size(click.ParamType[tuple[int, int]]):
    name = "WxH"

    def convert(self, value: object, param: click.Parameter | None, context: click.Context | None) -> tuple[int, int]:
        width, _, height = str(value).lower().partition("x")
        if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
            self.fail(f"found {value}, expected width and height in pixels as 1280x720", param, context)
        return int(width), int(height)


class _TimeOfDay(click.ParamType[float]):
    name = "HH:MM"

    def convert(self, value: object, param: click.Parameter | None, context: click.Context | None) -> float:
        try:
            moment = time.fromisoformat(str(value))
        except ValueError:
            self.fail(f"found {value}, expected a time of day as 09:30", param, context)
        if moment.tzinfo is not None:
            self.fail(f"found {value}, expected a time of day without a time zone", param, context)
        return moment.hour * 3600.0 + moment.minute * 60.0 + moment.second + moment.microsecond / 1e6


_POSITIVE = Finite(min=0, min_open=True)


@click.command("fit-workload")
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("-o", "--output", metavar="FILE", help="Write the workload to this file instead of standard output.")
@click.option("--instance", metavar="INSTANCE", help="Write this instance with the workload in place of its own.")
@click.option("--classes", type=click.IntRange(min=1), metavar="N", help="Number of classes, in place of the trace's own.")
@click.option("--scale", type=_POSITIVE, default=1.0, metavar="X", help="Factor on all rates, to plan for more traffic.")
@click.option("--ttft-ms", type=_POSITIVE, metavar="MS", help="TTFT target of every class; left open where absent.")
@click.option("--itl-ms", type=_POSITIVE, metavar="MS", help="ITL target of every class; left open where absent.")
@click.option(
    "--percentile",
    type=Finite(50, 99.999),
    default=95.0,
    metavar="P",
    help="Per cent that meet the targets.",
)
@click.option("--window", type=_POSITIVE, metavar="S", help="Length of the window whose busiest place is the peak, seconds.")
@click.option("--burst-window", type=_POSITIVE, metavar="S", help="Read burstiness from counts of this length, not gaps.")
@click.option("--hourly", is_flag=True, help="Demand by the hour of the day: 24 factors for each class.")
@click.option("--starts-at", type=_TimeOfDay(), help="Time of day of the first request, in place of the trace's own.")
@click.option("--elsewhere", type=Finite(min=0), metavar="X", help="Factor for hours of the day that the trace leaves open.")
@click.option("--image-tokens", type=_POSITIVE, metavar="N", help="Tokens of one image, where the trace does not give them.")
@click.option("--image-size", type=_Size(), help="Pixels of the images, in place of the trace's tokens.")
@click.option("--prefix-cache", is_flag=True, help="Take the trace's hits of a prefix cache as cached tokens.")
@click.option("--format", "form", type=click.Choice([one.name for one in FORMATS]), help="Format, in place of detection.")
@click.option("--time-unit", type=click.Choice(TIME_UNITS), help="Unit of the arrival times, in place of the format's.")
@click.option("-q", "--quiet", is_flag=True, help="No warnings and no progress on standard error.")
def fit_workload(
    traces: tuple[str, ...],
    output: str | None,
    instance: str | None,
    classes: int | None,
    scale: float,
    ttft_ms: float | None,
    itl_ms: float | None,
    percentile: float,
    window: float | None,
    burst_window: float | None,
    hourly: bool,
    starts_at: float | None,
    elsewhere: float | None,
    image_tokens: float | None,
    image_size: tuple[int, int] | None,
    prefix_cache: bool,
    form: str | None,
    time_unit: TimeUnit | None,
    quiet: bool,
) -> int:
    """Turn a trace of requests into the workload of an instance.

    TRACE is CSV or JSON lines, plain or gzip, or - for standard input. Several traces are laid over one another from their
    first arrivals. Requests are grouped into classes by images, text and output; every number carries a comment that says
    what it was read from. Targets are yours to give: with --ttft-ms and --itl-ms, or in the file.
    """
    check_output(output, to_standard_output="the workload goes to standard output without -o")
    if traces.count("-") + (instance == "-") > 1:
        raise UsageError("standard input can be read once")
    if not hourly and (starts_at is not None or elsewhere is not None):
        raise UsageError(f"{'--elsewhere' if starts_at is None else '--starts-at'} belongs to --hourly")
    read = [
        Trace(source=trace, form=form, time_unit=time_unit, tokens_per_image=image_tokens, prefix_hits=prefix_cache)
        for trace in traces
    ]
    settings = Settings(
        classes=classes, window_s=window, burst_s=burst_window, scale=scale, image_size=image_size, cached=prefix_cache
    )
    with progress(quiet=quiet, verbose=False) as say:
        say("reading")
        sample = Sample.of(merged(read))
        if hourly:
            started = _time_of_day(read) if starts_at is None else starts_at
            settings = replace(settings, start_of_day_s=started, elsewhere=elsewhere)
        say(f"grouping {len(sample):,} requests")
        try:
            fitted = fit(sample, settings)
        except ValueError as error:
            raise InvalidInput([Problem(file=read[0].file, message=str(error), hint=_way_out(str(error)))]) from None
    slo = {"ttft_ms": ttft_ms, "itl_ms": itl_ms, "percentile": percentile}
    files = [trace.file if trace.file == "<stdin>" else Path(trace.file).name for trace in read]
    given = {key: value for key, value in slo.items() if value is not None}
    text = workload_text(fitted, settings, given, files)
    notes = (
        [note for trace in read for note in trace.notes()]
        + _warnings(fitted, settings)
        + _about_hours(fitted, settings, read)
    )
    if instance is not None:
        text = instance_text(_read(instance), instance, text)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
    if len(given) < len(slo):
        notes.append("targets are left open: fill in slo in every class, or give --ttft-ms and --itl-ms")
    if instance is not None and output is not None:
        notes += _still_wrong(output)
    if not quiet:
        for note in notes:
            click.echo(f"warning: {printable(note)}", err=True)
    return 0


_APART_S = 60.0
"""Most by which traces that are laid over one another may start at other times of day than the first."""

_SINCE_1970_S = 1e9
"""Times from here on count from 1970 rather than from the start of a trace: it would be 30 years long."""


def _time_of_day(traces: list[Trace]) -> float:
    """When in the day the traces start, by their own dates.

    Raises
    ------
    InvalidInput
        They have no dates, or start at different times of day.
    """
    starts = [_start(trace) for trace in traces]
    if any(abs((one - starts[0] + DAY_S / 2) % DAY_S - DAY_S / 2) > _APART_S for one in starts):
        message = f"the traces start at different times of day: {', '.join(clock(one) for one in starts)}"
        hint = "they are laid over one another from their first requests; --starts-at HH:MM states when that is"
        raise InvalidInput([Problem(file=traces[0].file, message=message, hint=hint)])
    return starts[0]


def _start(trace: Trace) -> float:
    if trace.time_of_day_s is not None:
        return trace.time_of_day_s
    hint = "--starts-at HH:MM states it for the first request"
    if trace.counts.first_s >= _SINCE_1970_S:
        moment = datetime.fromtimestamp(trace.counts.first_s, UTC)
        hint += f"; counted from 1970 that is {moment:%Y-%m-%d %H:%M:%S} UTC"
    raise InvalidInput([Problem(file=trace.file, message="times are no dates, and tell no time of day", hint=hint)])


def _about_hours(fitted: Fit, settings: Settings, traces: list[Trace]) -> list[str]:
    """What of the day the trace does not tell."""
    if fitted.day is None:
        return []
    notes = []
    if fitted.day.uncovered() and settings.elsewhere is None:
        notes.append(
            f"the trace does not cover the hours {named(fitted.day.uncovered())}: fill in their factors in hourly, or give "
            "--elsewhere"
        )
    for trace in traces:
        if trace.counts.other_zones:
            notes.append(f"{trace.file}: rows have several time zones; hours are those of the first row's")
    return notes


def _way_out(message: str) -> str:
    return "--image-tokens N or --image-size WxH states them" if "neither tokens nor a size" in message else ""


def _warnings(fitted: Fit, settings: Settings) -> list[str]:
    warnings = []
    for one in fitted.classes:
        rates = one.traffic
        if settings.burst_s is None and rates.dispersion is not None and rates.dispersion > _CLUSTERED * rates.scv:
            warnings.append(
                f"{one.name}: requests come in bursts that single gaps do not show: counts of {CLUSTER_S:g} s vary "
                f"{rates.dispersion:.3g} times as Poisson, gaps {rates.scv:.3g} times; "
                f"--burst-window {CLUSTER_S:g} plans for it"
            )
        if not rates.known:
            warnings.append(f"{one.name}: too few requests to tell burstiness; Poisson is assumed")
    if fitted.day is None and not any(one.traffic.has_peak for one in fitted.classes):
        warnings.append("the trace is too short to show a peak: rate_per_s is the mean (--window S takes shorter windows)")
    return warnings


def _read(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput([Problem(file=path, message=f"cannot be read: {error}")]) from None


def _still_wrong(output: str) -> list[str]:
    """What the new instance still lacks."""
    try:
        epd_opt.read(output)
    except InvalidInput as error:
        rest = [problem for problem in error.problems if not ("slo" in problem.location and problem.message == "missing")]
        return [f"the instance is not valid yet: {problem}" for problem in rest]
    return []
