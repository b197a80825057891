"""GPU prefill and NPU decode: asks the study's questions, writes its data, tables and pictures.

    python benchmarks/npu_study.py [TABLE ...] [--write] [--pages]

Without `--write` the rows of the named tables (default: all) are printed, one JSON object a line. `--write` puts them into
docs/data/npu-study.json (the other tables stay), and redraws the page's tables and pictures from it; `--pages` does only
that, from the data as stored.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from npu import page, stored  # noqa: E402
from npu.ask import Asker  # noqa: E402
from npu.pictures import draw  # noqa: E402
from npu.tables import TABLES  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("table", nargs="*", choices=[*TABLES, []], help="tables to ask; default: all")
    parser.add_argument("--write", action="store_true", help="store the rows and redraw the page's tables and pictures")
    parser.add_argument("--pages", action="store_true", help="redraw tables and pictures from the stored rows only")
    options = parser.parse_args(arguments)
    ask = Asker()
    for name in [] if options.pages else options.table or list(TABLES):
        start, before = time.process_time(), ask.solved
        rows = TABLES[name](ask)
        spent = time.process_time() - start
        sys.stderr.write(f"{name}: {len(rows)} rows, {ask.solved - before} plans, {spent:.0f} s of processor time\n")
        if options.write:
            stored.keep(name, rows, order=list(TABLES))
        else:
            sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
    if options.write or options.pages:
        draw(stored.tables())
        page.write(stored.tables())
    return 0


if __name__ == "__main__":
    sys.exit(main())
