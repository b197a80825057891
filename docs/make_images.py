"""Redraws the plan in docs/images/ and the one printed in README.md from the instance they show.

Usage: python docs/make_images.py     needs the extra "plot"
"""

from __future__ import annotations

import re
from pathlib import Path

import epd_opt
from epd_opt.render import plan_text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
ALBUMS = ROOT / "instances" / "ten-images.yaml"


def readme_with(plan: epd_opt.Plan) -> str:
    """The README with this plan in its text block."""
    printed = plan_text(plan.document, warnings=False)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(?<=^```text\n).*?(?=^```$)", lambda _: printed, text, count=1, flags=re.S | re.M)


def main() -> None:
    """Draw everything."""
    IMAGES.mkdir(exist_ok=True)
    plan = epd_opt.solve(epd_opt.read(ALBUMS))
    (ROOT / "README.md").write_text(readme_with(plan), encoding="utf-8")
    plan.plot().savefig(IMAGES / "ten-images.png", dpi=120)


if __name__ == "__main__":
    main()
