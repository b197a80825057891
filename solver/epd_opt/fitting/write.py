"""A fit as the `workload:` block of an instance, every number with where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from epd_opt.errors import InvalidInput, Problem
from epd_opt.fields import shown
from epd_opt.fitting.clusters import LEAST_GAIN
from epd_opt.fitting.day import DAY_S, Day, HourlyTraffic, clock
from epd_opt.fitting.fit import Fit, FittedClass, Settings, stated
from epd_opt.hours import named
from epd_opt.instance import SCHEMA
from epd_opt.simulate.traffic import CLUSTER_S, LEAST_GAPS, Traffic
from epd_opt.source import parse

HOURLY_STEP = 0.1
"""Share of each class's peak to which hours are told apart: a programme of 24 different hours takes long."""

_OPEN_TARGETS = {"ttft_ms": "time to first token, milliseconds", "itl_ms": "interval between tokens, milliseconds"}


def workload_text(fitted: Fit, settings: Settings, slo: Mapping[str, float], files: Sequence[str]) -> str:
    """The block as YAML; targets that ``slo`` does not give are left as comments, which `epd-opt validate` asks for."""
    return "".join(f"{line}\n" for line in [*_heading(fitted, settings, files), *_block(fitted, settings, slo)])


def instance_text(instance: str, file: str, workload: str) -> str:
    """An instance with another workload; every other line of a YAML file stays as it is, comments included.

    Raises
    ------
    InvalidInput
        The file is not YAML or JSON, or holds no instance.
    """
    parsed = parse(instance, file)
    schema = parsed.value.get("schema") if isinstance(parsed.value, dict) else None
    if schema != SCHEMA:
        problem = Problem(path="schema", message=f"found {shown(schema)}, expected {SCHEMA}", location=("schema",))
        raise InvalidInput([parsed.place(problem)])
    if instance.lstrip().startswith("{"):
        replaced = {**parsed.value, "workload": parse(workload, "workload").value["workload"]}
        return json.dumps(replaced, indent=2, ensure_ascii=False) + "\n"
    lines = instance.splitlines(keepends=True)
    starts = sorted(parsed.keys[(key,)][0] - 1 for key in parsed.value)
    if "workload" not in parsed.value:
        return instance.rstrip("\n") + "\n\n" + workload
    first = parsed.keys[("workload",)][0] - 1
    end = next((start for start in starts if start > first), len(lines))
    while end > first + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return "".join([*lines[:first], workload, *lines[end:]])


def _heading(fitted: Fit, settings: Settings, files: Sequence[str]) -> list[str]:
    lines = [f"# Fitted by epd-opt fit-workload to {fitted.requests:,} requests over {fitted.span_s:,.0f} s:"]
    lines += [f"#   {file}" for file in files]
    if len(files) > 1:
        lines.append("#   (laid over one another from their first arrivals, up to the end of the one that ends first)")
    scaled = f", times {settings.scale:g} (--scale)" if settings.scale != 1 else ""
    total = sum(one.peak_rate for one in fitted.classes) * settings.scale
    lines.append(
        f"# Rates: each class in its own busiest window{scaled}; together {total:.4g} requests/s, "
        f"while the whole trace peaks at {fitted.peak_of_all * settings.scale:.4g}."
    )
    asked = f" (worth a class from {LEAST_GAIN:g})"
    if settings.classes is not None:
        asked = " (the number was asked for)"
    elif fitted.next_gain >= LEAST_GAIN:
        asked = " (no more are made unless --classes asks for them)"
    if fitted.next_gain > float("-inf"):
        lines.append(
            f"# Classes: {len(fitted.classes)}; one more would shorten the description by "
            f"{fitted.next_gain:.3f} nats per request{asked}."
        )
    if fitted.day is not None:
        lines += _day(fitted.day, settings)
    if fitted.tick_s:
        lines.append(f"# Times stand at ticks of {fitted.tick_s:.3g} s; requests of one tick are spread over it at random.")
    return lines


def _day(day: Day, settings: Settings) -> list[str]:
    """Which hours of the day the trace covers, and what stands for the others."""
    begins = f"the trace begins at {clock(day.start_s)} and ends at {clock(day.end_s)}"
    lines = [f"# Hours: {begins}, {day.span_s / DAY_S:.3g} days later." if day.span_s >= DAY_S else f"# Hours: {begins}."]
    if day.partly():
        minutes = ", ".join(f"{named([hour])} ({day.seconds()[hour] / 60:.0f} min)" for hour in day.partly())
        lines.append(f"# Of some hours it holds a part, which stands for the whole: {minutes}.")
    if day.uncovered():
        stands = "fill in their factors" if settings.elsewhere is None else f"{settings.elsewhere:g} was given for each"
        lines.append(f"# It holds less than half an hour of {named(day.uncovered())}: {stands}.")
    return lines


def _block(fitted: Fit, settings: Settings, slo: Mapping[str, float]) -> list[str]:
    lines = ["workload:", "  classes:"]
    if fitted.day is not None:
        step = f"  hourly_step: {HOURLY_STEP:g}   # hours that are alike to this share of the peak are planned for together"
        lines.insert(1, step)
    for one in fitted.classes:
        lines += _entry(one, fitted, settings, slo)
    return lines


def _entry(one: FittedClass, fitted: Fit, settings: Settings, slo: Mapping[str, float]) -> list[str]:
    entry = stated(one, settings)
    comments = _comments(one, fitted, settings)
    lines = [f"    # {one.share:.1%} of the requests ({one.requests:,}): {one.box.words()}"]
    for key, value in entry.items():
        opening = "    - " if key == "name" else "      "
        comment = comments.get(key)
        written = f"{opening}{key}: {_flow(value)}"
        if comment and len(written) + len(comment) > 110:
            lines += [f"      # {key}: {comment}", written]
        else:
            lines.append(f"{written}   # {comment}" if comment else written)
    lines.append("      slo:")
    lines += [f"        {key}: {value:g}" for key, value in slo.items()]
    lines += [f"        # {key}:   # fill in: {meaning}" for key, meaning in _open(slo)]
    return lines


def _open(slo: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(key, meaning) for key, meaning in _OPEN_TARGETS.items() if key not in slo]


def _comments(one: FittedClass, fitted: Fit, settings: Settings) -> dict[str, str]:
    rates = one.traffic
    scaled = f", times {settings.scale:g}" if settings.scale != 1 else ""
    comments = {
        **(_rates(one, fitted, scaled) if one.hourly is None else _rates_of_day(one.hourly, rates, scaled, settings)),
        "text_tokens": one.text.words(),
        "output_tokens": one.output.words(),
        "cached_tokens": "mean hits of the trace's prefix cache: an upper bound for a cache of finite size",
        "interarrival_scv": _burstiness(one, settings),
    }
    if one.images is not None:
        size = "size as asked for" if settings.image_size is not None else "mean size over the images"
        comments["images"] = f"count: {one.images.words()}; {size}"
    return comments


def _rates(one: FittedClass, fitted: Fit, scaled: str) -> dict[str, str]:
    rates = one.traffic
    return {
        "rate_per_s": (
            f"busiest {rates.window_s:,.0f} s, from {rates.peak_start_s:,.0f} s on; +-{rates.peak_error:.0%} by chance"
            f"{scaled}"
            if rates.has_peak
            else f"the mean: the trace is too short to show a peak{scaled}"
        ),
        "mean_rate_per_s": f"{one.requests:,} requests in {fitted.span_s:,.0f} s{scaled}",
    }


def _rates_of_day(hourly: HourlyTraffic, rates: Traffic, scaled: str, settings: Settings) -> dict[str, str]:
    """The same of demand by the hour."""
    window, hour = hourly.peak_window_s, named([hourly.peak_hour])
    error = rates.error_of(hourly.peak * window)
    factors = "each hour's busiest stretch as a share of that"
    if hourly.quiet():
        factors += f"; no request in {named(hourly.quiet())}"
    if None in hourly.busiest:
        stands = (
            "not in the trace" if settings.elsewhere is None else f"not in the trace, {settings.elsewhere:g} by --elsewhere"
        )
        uncovered = [i for i, rate in enumerate(hourly.busiest) if rate is None]
        factors += f"; {named(uncovered)} {stands}"
    return {
        "rate_per_s": f"busiest {window:,.0f} s within an hour of the day, {hour}; +-{error:.0%} by chance{scaled}",
        "hourly": factors,
        "mean_rate_per_s": f"mean of the hours{scaled}",
    }


def _burstiness(one: FittedClass, settings: Settings) -> str:
    rates = one.traffic
    if not rates.known:
        return f"assumed: fewer than {LEAST_GAPS} gaps to a window"
    if settings.burst_s is not None:
        return f"variance over mean of the counts in {settings.burst_s:g} s"
    window = f"{rates.window_s:,.0f} s windows" if rates.has_peak else "the trace"
    counts = "" if rates.dispersion is None else f"; counts of {CLUSTER_S:g} s vary {rates.dispersion:.3g} times as Poisson"
    return f"gaps within {window}{counts}"


def _flow(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:.10g}"
    return "null" if value is None else str(value)
