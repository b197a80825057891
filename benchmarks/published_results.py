"""Published results beside our predictions, with errors.

    python benchmarks/published_results.py FOLDER [--write]

FOLDER holds `encoder_runs.csv`, `epd_runs.csv`, `mlperf_v5.1.csv` and `measured/`. Goodputs come from the planner itself
(`objective: goodput` on a fleet whose stock is fixed), the rest from the models. `--write` puts the tables into
docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from published import ampere, encoders, mlperf, placements, separation  # noqa: E402
from published.row import Row, table  # noqa: E402

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
START, END = "<!-- published results -->\n", "<!-- end of published results -->\n"


def sections(folder: Path) -> dict[str, list[Row]]:
    """Rows of each kind of result."""
    apart = separation.rows(folder)
    return {
        "MLPerf Inference v5.1 (engine `tuned`)": mlperf.headline(),
        "MLPerf Inference v5.1, a fleet of different devices": mlperf.adds_up(),
        "MLPerf Inference v5.1 Offline, medians over submissions": mlperf.offline_rows(folder),
        "Where images are encoded (Qwen3.5-122B-A10B NVFP4, GB200; gains over integrated)": placements.rows(),
        "Encoder separation on four A100 (Qwen3-VL-4B, vLLM): goodput, P99 TTFT < 20 s, P99 TPOT < 100 ms": apart["goodput"],
        "The same in overload: throughput": apart["overload"],
        "The same at 4 requests/s: P99 TPOT": apart["intervals"],
        "Where a first token's time goes (Qwen3-VL-30B-A3B, H100, four images of 2400 x 1080)": encoders.first_token(),
        "Vision encoders: forward passes": encoders.forward_passes(folder),
        "Vision encoders: kernels": encoders.kernels(folder),
        "Language models on A100": ampere.rows(folder),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and, where asked to, write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path, help="folder of published measurements")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/accuracy.md")
    options = parser.parse_args(arguments)
    found = sections(options.folder)
    aimed = [row.met for rows in found.values() for row in rows if row.met is not None]
    text = "".join(f"### {title}\n\n{table(rows)}\n\n" for title, rows in found.items())
    text += f"{sum(aimed)} of {len(aimed)} figures with an aim meet it.\n"
    sys.stdout.write(text)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{START}{text}{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
