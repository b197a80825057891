"""A browser lays the report out without a complaint and without anything beyond the edge of the screen."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import epd_opt
from epd_opt.report import report_html
from support.documents import day, measured, modelled

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_LONG = "a/very/long/name/without/any/space/" * 4
_MEASURE = """
addEventListener("load", () => {
  const edges = [...document.querySelectorAll("iframe")].map(f => {
    const page = f.contentDocument;
    return {asked: Number(f.width), inner: page.documentElement.clientWidth, needs: page.documentElement.scrollWidth};
  });
  const out = document.createElement("pre");
  out.id = "edges";
  out.textContent = JSON.stringify(edges);
  document.body.append(out);
});
"""


def test_pages_fit_phones_and_screens(tmp_path: Path) -> None:
    """Pages of a plan, of one with long names, of a day and of none need no more width than they have, and log nothing."""
    browser = next(filter(None, map(shutil.which, _NAMES)), None)
    if browser is None:
        pytest.skip("no Chromium on this machine to lay pages out with")
    plan = epd_opt.solve(measured())
    text = plan.to_json()
    for name in [*plan.classes, *plan.devices, *(pool.name for pool in plan.pools)]:
        text = text.replace(json.dumps(name), json.dumps(_LONG + name))
    named = epd_opt.Plan.load({**json.loads(text), "instance": _LONG, "warnings": [_LONG]})
    plans = [epd_opt.solve(modelled()), named, epd_opt.solve(measured(limits={"devices": 2})), epd_opt.solve(day())]
    frames = [
        f'<iframe width="{width}" height="600" srcdoc="{html.escape(report_html(one.document))}"></iframe>'
        for one in plans
        for width in (390, 820, 1440)
    ]
    wrapped = f"<meta charset=utf-8><script>{_MEASURE}</script>{''.join(frames)}"
    (tmp_path / "frames.html").write_text(wrapped, encoding="utf-8")
    command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"file://{tmp_path / 'frames.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="edges">(.*?)</pre>', done.stdout)
    assert found is not None
    edges = json.loads(found[1])
    assert len(edges) == len(frames)
    assert not [edge for edge in edges if edge["needs"] > edge["inner"] or abs(edge["inner"] - edge["asked"]) > 20]
    assert "CONSOLE" not in done.stderr
