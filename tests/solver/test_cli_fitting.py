"""`epd-opt fit-workload` writes workloads that instances hold, and says what it could not read off."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import epd_opt
from epd_opt.source import parse

INSTANCE = """\
# Top.
schema: epd-opt/instance/v1
name: desk   # kept
model: Qwen2.5-VL-7B
workload:
  classes:
    # gone
    - {name: old, rate_per_s: 1, text_tokens: 1, output_tokens: 1, slo: {ttft_ms: 1, itl_ms: 1}}

# What may serve it.
devices:
  - {sku: L40S, price: {usd_per_hour: 1.5}, stock: 40, tensor_parallel: [1]}   # kept
solver: {gap: 0.05}
"""


@pytest.fixture
def trace(tmp_path) -> Path:
    """Twenty minutes of chat (2/s) and of pairs of photos (1/s)."""
    rng = random.Random(3)
    rows, time = [], 0.0
    while time < 1200:
        time += rng.expovariate(3.0)
        images = rng.choice([0, 0, 2])
        text = round(rng.lognormvariate(5 if images else 6.5, 0.4))
        rows.append(f"{time:.3f},{text},{images},{images * 300},{round(rng.lognormvariate(5, 0.4))}")
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,input_text_tokens,num_images,image_tokens,output_tokens\n" + "\n".join(rows) + "\n")
    return path


def test_a_workload_solves_inside_an_instance(run, trace, tmp_path):
    """Everything else of the instance stays as it is, comments included."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(INSTANCE)
    code, out, err = run("fit-workload", trace, "--instance", old, "-o", new, "--ttft-ms", 3000, "--itl-ms", 60)
    assert (code, out, err) == (0, "", "")
    text = new.read_text()
    assert text.startswith("# Top.\nschema: epd-opt/instance/v1\nname: desk   # kept\nmodel: Qwen2.5-VL-7B\n# Fitted by")
    assert text.endswith(INSTANCE[INSTANCE.index("\n# What may serve it.") :])
    assert "old" not in text
    read = epd_opt.read(new)
    assert [one.name for one in read.workload.classes] == ["text", "image"]
    assert read.workload.classes[1].images.tokens == 300
    code, out, _ = run("solve", new, "-q")
    assert code == 0
    assert "proved" in out


def test_without_targets_the_file_says_what_to_fill_in(run, trace, tmp_path):
    """`epd-opt validate` asks for them with line and path."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(INSTANCE)
    code, out, err = run("fit-workload", trace)
    assert code == 0
    assert err == "warning: targets are left open: fill in slo in every class, or give --ttft-ms and --itl-ms\n"
    assert out.count("# ttft_ms:   # fill in: time to first token, milliseconds") == 2
    assert run("fit-workload", trace, "--instance", old, "-o", new)[2] == err
    code, _, err = run("validate", new)
    assert code == 3
    assert "workload.classes.image.slo.ttft_ms: missing (target in milliseconds)" in err


def test_an_instance_without_a_workload_or_in_json_takes_one_too(run, trace, tmp_path):
    """The block is added at the end; JSON stays JSON."""
    bare = tmp_path / "bare.yaml"
    bare.write_text("schema: epd-opt/instance/v1\nmodel: Qwen2.5-VL-7B\ndevices: [{sku: L40S, price: {usd_per_hour: 1}}]\n")
    targets = ("--ttft-ms", 3000, "--itl-ms", 60)
    _, out, _ = run("fit-workload", trace, "--instance", bare, *targets)
    assert len(epd_opt.read(parse(out, "new").value).workload.classes) == 2
    json_file = tmp_path / "bare.json"
    json_file.write_text('{"schema": "epd-opt/instance/v1", "model": "Qwen2.5-VL-7B", "devices": [{"sku": "L40S"}]}')
    _, out, _ = run("fit-workload", trace, "--instance", json_file, *targets)
    assert out.startswith("{")
    assert len(epd_opt.read(parse(out, "new").value).workload.classes) == 2


def test_options_change_what_they_name(run, trace):
    """Classes, scale, percentile, image size and window."""
    _, plain, _ = run("fit-workload", trace, "-q")
    _, changed, _ = run(
        *("fit-workload", trace, "-q", "--classes", 3, "--scale", 2, "--percentile", 99, "--image-size", "640x480"),
        *("--window", 100, "--ttft-ms", 700),
    )
    before, after = (parse(text, "w").value["workload"]["classes"] for text in (plain, changed))
    assert (len(before), len(after)) == (2, 3)
    assert sum(one["mean_rate_per_s"] for one in after) == pytest.approx(
        2 * sum(one["mean_rate_per_s"] for one in before), rel=1e-3
    )
    assert after[0]["slo"] == {"ttft_ms": 700, "percentile": 99}
    images = next(one["images"] for one in after if "images" in one)
    assert images == {"count": 2, "width_px": 640, "height_px": 480}
    assert "busiest 100 s" in changed
    assert "busiest 300 s" in plain


def test_traces_lie_over_one_another(run, trace):
    """The same trace twice has twice the rates."""
    once, twice = (
        parse(run("fit-workload", *([trace] * count), "-q")[1], "w").value["workload"]["classes"] for count in (1, 2)
    )
    assert [one["mean_rate_per_s"] for one in twice] == pytest.approx([2 * one["mean_rate_per_s"] for one in once], rel=0.01)


@pytest.mark.parametrize(
    ("lines", "options", "code", "said"),
    [
        (["a,b"], (), 3, "are missing, as format"),
        (["arrival_s,input_text_tokens,output_tokens", "0,5,5"], (), 3, "too few to tell a rate"),
        (["arrival_s,input_text_tokens,num_images,output_tokens", "0,5,1,5", "9,5,1,5"], (), 3, "--image-tokens N or"),
        (["arrival_s,input_text_tokens,output_tokens", "0,5,5", "1,5,5"], ("--classes", "2"), 3, "are the most that differ"),
        (["arrival_s,input_text_tokens,output_tokens", "0,5,5", "9,5,5"], ("--window", "3"), 3, "a peak cannot be told"),
        (["arrival_s,input_text_tokens,output_tokens", "0,5,5", "9,5,5"], ("--burst-window", "5"), 3, "cannot be compared"),
        (
            ["arrival_s,input_text_tokens,output_tokens", "0,5,5", "9,5,5"],
            ("--instance", "TRACE"),
            3,
            "schema: found nothing",
        ),
        (["x"], ("--image-size", "640"), 2, "expected width and height in pixels as 1280x720"),
        (["x"], ("-o", "-"), 2, "goes to standard output without -o"),
        (["x"], ("--format", "parquet"), 2, "'parquet' is not one of"),
    ],
)
def test_what_cannot_be_fitted_ends_with_its_code(run, tmp_path, lines, options, code, said):
    """Wrong usage is 2, a trace that cannot be used is 3."""
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(lines) + "\n")
    ended, out, err = run("fit-workload", path, *(path if option == "TRACE" else option for option in options))
    assert (ended, out) == (code, "")
    assert said in err
