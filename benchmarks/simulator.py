"""What the simulator is worth: closed results, published ladders, shipped instances, traces, speed.

Usage: python benchmarks/simulator.py [TABLE]... [--runs CSV] [--traces FOLDER] [--write]

Tables are queues, ladders, instances, replay and speed; all where none is named. `--runs` names the measurements that the
ladders are taken from and adds why one of them is missed; `--traces` names the folder of request traces, without which
`replay` is skipped. `--write` puts the tables into docs/simulation.md. Speed beside SimPy needs the package simpy. Run it
from the repository, whose tests it uses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from simulated.ladders import ladders, why  # noqa: E402
from simulated.queues import queues  # noqa: E402
from simulated.replay import replay  # noqa: E402
from simulated.shipped import instances  # noqa: E402
from simulated.speed import speed  # noqa: E402

PAGE = ROOT / "docs" / "simulation.md"
TABLES = ("queues", "ladders", "instances", "replay", "speed")


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"{', '.join(TABLES)}; all where none is named")
    parser.add_argument("--runs", type=Path, help="measurements that the ladders are taken from (CSV)")
    parser.add_argument("--traces", type=Path, help="folder of request traces")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/simulation.md")
    options = parser.parse_args()
    unknown = set(options.tables) - set(TABLES)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    for name in options.tables or TABLES:
        for part, lines in _lines(name, options.runs, options.traces).items():
            print(f"\n## {part}\n")
            text = "".join(_shown(lines))
            if options.write and text:
                _write(part, text)


def _lines(name: str, runs: Path | None, traces: Path | None) -> dict[str, Iterator[str]]:
    if name == "ladders":
        return {"ladders": ladders()} | ({} if runs is None else {"why": why(runs)})
    if name == "replay":
        return {"replay": replay(traces)}
    return {name: {"queues": queues, "instances": instances, "speed": speed}[name]()}


def _shown(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        print(line, flush=True)
        yield f"{line}\n"


def _write(part: str, text: str) -> None:
    start, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->\n"
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(start)
    if not found:
        raise SystemExit(f"{PAGE} has no place {start.strip()}")
    PAGE.write_text(f"{before}{start}{text}{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
