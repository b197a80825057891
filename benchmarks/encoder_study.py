"""Should the encoder have its own GPUs? Computes the tables of docs/encoder-separation.md, draws its pictures, fills it in.

    python benchmarks/encoder_study.py                  all of it, some minutes
    python benchmarks/encoder_study.py cost levers      these tables anew, then pictures and page
    python benchmarks/encoder_study.py --draw           pictures and page from the tables as they are

Tables are kept as docs/data/encoder-*.csv.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

from encoding import costs, figures, moves, page, published, simulated  # noqa: E402

TABLES = {table.name: table for module in (published, costs, moves, simulated) for table in module.TABLES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is asked for, then draw and fill in."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "tables", nargs="*", choices=[[], *TABLES], metavar="TABLE", help=f"default: all ({', '.join(TABLES)})"
    )
    parser.add_argument("--draw", action="store_true", help="compute nothing")
    options = parser.parse_args(arguments)
    for name in [] if options.draw else options.tables or TABLES:
        begun = time.process_time()
        TABLES[name].write()
        sys.stderr.write(f"{name}: {time.process_time() - begun:.0f} s\n")
    kept = {name: table.kept() for name, table in TABLES.items()}
    figures.draw(kept)
    for path in page.PAGES:
        path.write_text(page.filled(path.read_text(encoding="utf-8"), kept), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
