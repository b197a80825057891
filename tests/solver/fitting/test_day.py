"""Demand by the hour is read off a trace as far as it covers the day, and no further."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import numpy as np
import pytest

import epd_opt
from epd_opt.cli import main
from epd_opt.fitting.day import Day, by_the_hour
from epd_opt.source import parse

INSTANCE = """\
schema: epd-opt/instance/v1
model: Qwen2.5-VL-7B
devices: [{sku: L40S, price: {usd_per_hour: 1.5}, stock: 40, tensor_parallel: [1]}]
workload: {classes: []}
"""


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command; exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["epd-opt", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run


def evenly(rates, hours, start=0.0):
    """Requests at equal gaps, so many a second in each hour from the ``start`` second of the first one on."""
    parts = [np.arange(3600 * hour, 3600 * (hour + 1), 1 / rates[hour % 24]) for hour in hours if rates[hour % 24]]
    times = np.concatenate(parts)
    return times[times >= start] - start


def test_even_traffic_over_two_days_gives_back_its_rates():
    """Twice a day at 1/s to 4/s by the hour: every hour's factor is its share of the peak, and the mean that of the day."""
    rates = [1, 2, 4] + [1] * 21
    times = evenly(rates, range(48))
    day = Day(start_s=0.0, span_s=float(times[-1]))
    found = by_the_hour(times, day)
    assert day.uncovered() == ()
    assert (found.peak, found.peak_hour) == (pytest.approx(4, rel=1e-3), 2)
    assert found.factors() == tuple(rate / 4 for rate in rates)
    assert found.mean_of_day(None) == pytest.approx(28 / 24, rel=1e-3)


def test_the_busiest_stretch_of_an_hour_counts_and_the_mean_is_another():
    """An hour with ten minutes at 10/s and fifty at 1/s is planned for at 10/s; on average it has 2.5/s."""
    times = np.concatenate([np.arange(0, 600, 0.1), np.arange(600, 3600, 1.0), np.arange(3600, 7200.5, 1.0)])
    found = by_the_hour(times, Day(start_s=0.0, span_s=7200.0))
    assert found.busiest[0] == pytest.approx(10, rel=1e-3)
    assert found.mean[0] == pytest.approx(2.5, rel=1e-3)
    assert found.busiest[1] == pytest.approx(1, rel=0.01)
    assert found.window_s[1] > found.window_s[0] >= 160


def test_quiet_hours_are_not_judged_by_chance():
    """At one request a minute the busiest five minutes of an hour have thrice the mean; the hour as a whole does not."""
    dice = random.Random(2)
    times = np.sort(np.array([dice.uniform(0, 3600) for _ in range(60)]))
    found = by_the_hour(times, Day(start_s=0.0, span_s=3600.0))
    assert found.busiest[0] == pytest.approx(found.mean[0], rel=0.02)
    short = by_the_hour(times, Day(start_s=0.0, span_s=3600.0), window_s=300.0)
    assert short.busiest[0] > 1.5 * found.busiest[0]


def test_what_the_trace_does_not_hold_stays_open():
    """From 22:40 to 02:20: three hours whole or by more than half, one by a third, and the rest of the day not at all."""
    day = Day(start_s=22 * 3600 + 2400.0, span_s=3 * 3600 + 2400.0)
    times = np.arange(0, day.span_s + 0.5, 1.0)
    found = by_the_hour(times, day)
    assert day.uncovered() == tuple(range(2, 23))
    assert day.partly() == ()
    assert [hour for hour, rate in enumerate(found.busiest) if rate is not None] == [0, 1, 23]
    assert found.mean_of_day(None) is None
    assert found.mean_of_day(0.5) == pytest.approx((3 + 21 * 0.5) / 24, rel=1e-2)
    assert Day(start_s=9 * 3600 + 1500.0, span_s=3600.0).partly() == (9,)


def test_a_class_that_is_absent_in_an_hour_has_factor_0_there():
    """A covered hour without a request of the class is told apart from an hour that the trace does not hold."""
    times = np.concatenate([np.arange(0, 3600, 2.0), np.arange(7200, 10800, 2.0)])
    found = by_the_hour(times, Day(start_s=5 * 3600.0, span_s=10800.0))
    assert found.factors()[5:9] == (1.0, 0.0, 1.0, None)
    assert found.quiet() == (6,)


def written(path: Path, start: str, hours: float, gap: float = 4.0, zone: str = "") -> Path:
    """A trace with dates: chat, half as much in the second half."""
    moment, dice = datetime.datetime.fromisoformat(start), random.Random(6)
    rows, seconds = [], 0.0
    while seconds < hours * 3600:
        rows.append(f"{(moment + datetime.timedelta(seconds=seconds)).isoformat(sep=' ')}{zone},{200 + len(rows) % 7},100")
        seconds += dice.expovariate(1 / gap) * (1 if seconds < hours * 1800 else 2)
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(rows) + "\n")
    return path


def test_hours_are_those_of_the_dates_as_written(run, tmp_path):
    """A trace with a time zone keeps it; `--starts-at` puts the first request elsewhere."""
    trace = written(tmp_path / "t.csv", "2026-03-02 22:00:00", 4, zone="+09:00")
    code, out, err = run("fit-workload", trace, "--hourly", "--ttft-ms", 2000, "--itl-ms", 60)
    assert code == 0
    assert err == (
        "warning: the trace does not cover the hours 02-22: fill in their factors in hourly, or give --elsewhere\n"
    )
    hourly = parse(out, "w").value["workload"]["classes"][0]["hourly"]
    assert [hour for hour, factor in enumerate(hourly) if factor is not None] == [0, 1, 22, 23]
    assert hourly[22:] + hourly[:2] == pytest.approx([1, 1, 0.5, 0.5], abs=0.1)
    _, out, _ = run("fit-workload", trace, "--hourly", "-q", "--starts-at", "13:00")
    moved = parse(out, "w").value["workload"]["classes"][0]["hourly"]
    assert [hour for hour, factor in enumerate(moved) if factor is not None] == [13, 14, 15, 16]


def test_a_day_from_a_trace_makes_an_instance(run, tmp_path):
    """Open hours are asked for with file, line and column; with `--elsewhere` the instance has a whole day."""
    trace, old, new = written(tmp_path / "t.csv", "2026-03-02 22:00:00", 4), tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(INSTANCE)
    common = ("fit-workload", trace, "--hourly", "--ttft-ms", 2000, "--itl-ms", 60, "--instance", old, "-o", new)
    assert run(*common, "-q")[0] == 0
    code, _, err = run("validate", new)
    line = next(i for i, text in enumerate(new.read_text().splitlines(), 1) if "hourly: [" in text)
    assert code == 3
    assert f"{new}:{line}:" in err
    assert "workload.classes.text.hourly[2]: found nothing, expected a number" in err
    assert run(*common, "--elsewhere", 0.1)[2] == ""
    request = epd_opt.read(new).workload.classes[0]
    assert request.hourly[2:22] == (0.1,) * 20
    assert request.rate_per_s == pytest.approx(0.25, rel=0.15)
    mean = (0.25 + 0.25 + 0.125 + 0.125 + 20 * 0.1 * request.rate_per_s) / 24
    assert request.mean_rate_per_s == pytest.approx(mean, rel=0.05)


def test_what_tells_no_hour_is_refused_with_a_way_out(run, tmp_path):
    """Times that are no dates, traces of different times of day, a trace of a few minutes, options without `--hourly`."""
    rows = "\n".join(f"{1_700_000_000 + 10 * i},{200 + i % 7},100" for i in range(400))
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("arrival_s,input_text_tokens,output_tokens\n" + rows + "\n")
    code, _, err = run("fit-workload", numbers, "--hourly")
    assert code == 3
    assert "--starts-at HH:MM states it for the first request; counted from 1970 that is 2023-11-14 22:13:20 UTC" in err
    assert run("fit-workload", numbers, "--hourly", "-q", "--starts-at", "22:13")[0] == 0
    early, late = (written(tmp_path / f"{hour}.csv", f"2026-03-02 {hour}:00:00", 2) for hour in ("09", "17"))
    code, _, err = run("fit-workload", early, late, "--hourly")
    assert code == 3
    assert "different times of day: 09:00:00, 17:00:00" in err
    code, _, err = run("fit-workload", written(tmp_path / "short.csv", "2026-03-02 08:50:00", 0.5), "--hourly")
    assert code == 3
    assert "holds no hour of the day by half" in err
    assert run("fit-workload", early, "--elsewhere", 0.2)[0] == 2
    assert run("fit-workload", early, "--hourly", "--starts-at", "25:00")[0] == 2
    zones = tmp_path / "zones.csv"
    zones.write_text(early.read_text().replace(",200,", "+00:00,200,", 2).replace("+00:00,200,", ",200,", 1))
    assert "unlike the rows above" in run("fit-workload", zones, "--hourly")[2]


def test_rows_of_several_time_zones_are_pointed_out(run, tmp_path):
    """Hours are those of the first row's zone; the instants stay what they are."""
    trace = written(tmp_path / "t.csv", "2026-03-02 09:00:00", 2, zone="+00:00")
    lines = trace.read_text().splitlines()
    lines[5] = lines[5].replace(" 09:", " 11:").replace("+00:00", "+02:00")
    trace.write_text("\n".join(lines) + "\n")
    _, out, err = run("fit-workload", trace, "--hourly")
    assert "rows have several time zones; hours are those of the first row's" in err
    hourly = parse(out, "w").value["workload"]["classes"][0]["hourly"]
    assert [hour for hour, factor in enumerate(hourly) if factor is not None] == [9, 10]
