"""Measured runs that contradict themselves are told from runs that are only slow."""

import pytest

from epd_models.measurements import read_measurements
from epd_models.plausible import contradiction
from epd_models.serving import closed_loop, run_of

HEADER = "model,dtype,gpu,engine,n_gpu,tp,isl,osl,concurrency,ttft_ms,itl_ms"


def said_of(line):
    """What is said of a row."""
    (row,) = read_measurements(f"{HEADER}\n{line}\n")
    return contradiction(run_of(row)[0], ttft_s=row.ttft_s, itl_s=row.itl_s)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # rows of silicon_sample.csv in the Apache-2.0 package aiconfigurator
        ("Qwen3-32B-NVFP4,fp4,gb200,trtllm,2,2,15000,500,448,746.4,13.666", "answered in 7.58 s, but the device takes"),
        ("gpt-oss-120b,fp4,h100_sxm,vllm,8,8,1024,8192,512,117788.21,3.571", "waits 118 s where prompts and cache explain"),
        ("Llama-3.1-8B-FP8,fp8,h200_sxm,vllm,2,2,2000,100,96,75.72,9.45", "prompts were cached or read elsewhere"),
        ("Llama-3.1-70B,fp8,h200_sxm,trtllm,8,8,1024,1024,128,324,21.64", ""),
        ("Llama-3.1-70B,fp8,h200_sxm,trtllm,1,1,8192,1024,128,127810,80.48", ""),
    ],
)
def test_public_rows_are_told_apart(line, expected):
    """More work than the peaks allow, or a wait that neither prompts nor memory explain; a full cache explains minutes."""
    found = said_of(line)
    assert expected in found
    assert bool(found) == bool(expected)


def test_what_the_models_predict_is_never_a_contradiction():
    """At one client and at many, short prompts and long ones."""
    for shape in ("1024,1024,1", "8192,256,256", "128,4096,64"):
        line = f"Llama-3.1-70B,fp8,h200_sxm,vllm,4,4,{shape}"
        (row,) = read_measurements(f"{HEADER}\n{line},,\n")
        times = closed_loop(run_of(row)[0])
        assert said_of(f"{line},{times.ttft_s * 1e3:.6g},{times.itl_s * 1e3:.6g}") == ""
