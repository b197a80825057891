"""Closed-loop predictions follow their formula, read rows as they are meant, and meet public runs within stated bounds."""

from dataclasses import replace

import numpy as np
import pytest

from epd_models import catalog
from epd_models.measurements import REQUIRED, read_measurements
from epd_models.memory import kv_shape
from epd_models.parallelism import Parallelism
from epd_models.precision import Precision
from epd_models.serving import QUEUE_SHARE, Group, Run, closed_loop, in_flight, predict, repairman_wait, run_of
from epd_models.stages.decode import decode_step
from epd_models.stages.prefill import prefill_time
from epd_models.worker import Worker

COLUMNS = (*REQUIRED, "pp", "attention_dp", "moe_tp", "moe_ep", "max_sequences", "mode", "notes")


def worker(name="Llama-3.1-70B", sku="H200-SXM", *, weights="fp8", engine="vllm", **degrees):
    """A worker of the catalogue."""
    return Worker.checked(
        model=catalog.model(name),
        device=catalog.device(sku),
        cut=Parallelism(**degrees),
        precision=Precision(weights=weights, kv_cache="fp8"),
        engine=catalog.engine(engine),
    )


def run(built, concurrency, prompt=1024, output=1024, replicas=1, prefill=None):
    """A run of one group of replicas."""
    return Run(
        decode=Group(worker=built, replicas=replicas),
        prefill=prefill,
        prompt_tokens=float(prompt),
        output_tokens=float(output),
        concurrency=float(concurrency),
    )


def row(**cells):
    """One measured row; what is not given is a Llama 3.1 70B on 8 H200."""
    usual = {
        "model": "meta-llama/Llama-3.1-70B",
        "dtype": "fp8",
        "gpu": "h200_sxm",
        "engine": "vllm",
        "n_gpu": 8,
        "tp": 8,
        "isl": 1024,
        "osl": 1024,
        "concurrency": 16,
    }
    named = {name: str((usual | cells).get(name, "")) for name in COLUMNS}
    (read,) = read_measurements(",".join(COLUMNS) + "\n" + ",".join(named.values()) + "\n")
    return read


def test_the_interval_and_the_first_token_follow_the_formula():
    """Step plus the prompts read meanwhile; prefill, a quarter of the queue, the share of the opening burst."""
    built = worker(tensor=8)
    times = closed_loop(run(built, 32, 2048, 512))
    prefill, step = prefill_time(built), decode_step(built, sequences=32).seconds(32, 2048 + 256)
    busy, opening = float(prefill.busy_s(np.array([2048.0]))[0]), built.coefficients.opening_share
    assert times.itl_s == pytest.approx(step + (1 - opening) * 32 * busy / 512)
    own = float(prefill.own_s(np.array([2048.0]))[0]) + prefill.per_chunk + built.engine.request_overhead_s
    wait = repairman_wait(32, busy + step, 512 * times.itl_s)
    assert times.ttft_s == pytest.approx(own + QUEUE_SHARE * wait + opening * 32 * busy)


def test_more_clients_wait_longer_and_slow_each_other():
    """Both times grow with concurrency."""
    times = [closed_loop(run(worker(tensor=8), c)) for c in (1, 4, 16, 64, 128)]
    assert [t.itl_s for t in times] == sorted(t.itl_s for t in times)
    assert [t.ttft_s for t in times] == sorted(t.ttft_s for t in times)


def test_replicas_share_the_clients():
    """Two replicas with 32 clients are two with 16."""
    assert closed_loop(run(worker(tensor=4), 32, replicas=2)) == closed_loop(run(worker(tensor=4), 16))


def test_clients_beyond_the_cache_wait_for_room():
    """One H200 holds some fifty prompts of 8192 tokens of Llama 3.1 70B: the published first token of 128 clients takes
    two minutes (TensorRT-LLM, 127.8 s), and more clients do not lengthen the interval."""
    built = worker(engine="trtllm")
    held = in_flight(built, clients=128, prompt_tokens=8192, output_tokens=1024)
    assert 30 < held < 60
    few, many = (closed_loop(run(built, c, 8192)) for c in (64, 128))
    assert few.itl_s == pytest.approx(many.itl_s)
    assert many.ttft_s == pytest.approx(127.8, rel=0.6)


@pytest.mark.parametrize(("concurrency", "tpot_ms", "ttft_s"), [(64, 30.48, 79.5), (128, 30.42, 369.0)])
def test_engines_that_reserve_whole_outputs_hold_fewer_sequences(concurrency, tpot_ms, ttft_s):
    """Llama 3.1 70B FP8 on one H200, 1024 in and 8192 out, TensorRT-LLM (silicon_sample.csv, Apache-2.0 package
    aiconfigurator): the interval is that of some forty sequences whatever the load, the others wait."""
    built = worker(engine="trtllm")
    times = closed_loop(run(built, concurrency, 1024, 8192))
    assert times.itl_s * 1e3 == pytest.approx(tpot_ms, rel=0.2)
    assert 0.5 * ttft_s < times.ttft_s < 2.5 * ttft_s
    grown = worker(engine="vllm")
    held = [in_flight(one, clients=1e4, prompt_tokens=1024.0, output_tokens=8192.0) for one in (built, grown)]
    assert held[0] / held[1] == pytest.approx((1024 + 4096) / (1024 + 8192))


def test_a_limit_of_sequences_keeps_the_interval_and_lengthens_the_wait():
    """gpt-oss-120b on two H100, 512 clients: published 14.8 ms per token beside minutes of waiting, as with 64 places."""
    cells = {"model": "openai/gpt-oss-120b", "dtype": "fp4", "gpu": "h100_sxm", "n_gpu": 2, "tp": 2, "osl": 8192}
    limited, free = (run_of(row(**cells, concurrency=512, max_sequences=limit))[0] for limit in (64, ""))
    times = closed_loop(limited)
    assert times.itl_s * 1e3 == pytest.approx(14.8, rel=0.2)
    assert times.ttft_s > 300
    assert closed_loop(free).itl_s > 2 * times.itl_s


def test_a_closed_queue_of_one_server_keeps_everybody():
    """Throughput times (think + response) is the number of customers; without thinking all but one wait."""
    for clients, service, think in ((10, 0.2, 3.0), (40, 0.2, 3.0), (3, 1.0, 0.5)):
        response = repairman_wait(clients, service, think) + service
        queue = clients * response / (think + response)
        assert response == pytest.approx(service * (1 + queue * (clients - 1) / clients), rel=0.35)
    assert repairman_wait(5, 1.0, 0.0) == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("concurrency", "tpot_ms", "ttft_ms"),
    [(4, 6.26, 69), (8, 6.72, 82), (16, 7.69, 103), (32, 9.30, 143), (64, 13.51, 225), (128, 21.64, 324)],
)
def test_the_published_ladder_of_eight_h200_is_met(concurrency, tpot_ms, ttft_ms):
    """Llama 3.1 70B FP8, TP8, TensorRT-LLM, 1024 in and out (silicon_sample.csv, Apache-2.0 package aiconfigurator):
    intervals within a fifth."""
    times = closed_loop(run(worker(engine="trtllm", tensor=8), concurrency))
    assert times.itl_s * 1e3 == pytest.approx(tpot_ms, rel=0.2)


@pytest.mark.parametrize(
    ("name", "sku", "engine", "weights", "degrees", "shape", "measured"),
    [
        # rows of silicon_sample.csv in the Apache-2.0 package aiconfigurator: (isl, osl, concurrency), (TTFT, TPOT) in ms
        ("Qwen3-32B", "H100-SXM", "trtllm", "fp8", {"tensor": 2}, (1024, 512, 32), (216, 14.8)),
        ("Qwen3-32B", "H100-SXM", "vllm", "bf16", {"tensor": 4}, (1024, 1024, 32), (178, 13.7)),
        ("Qwen3-32B", "H100-SXM", "sglang", "bf16", {"tensor": 4}, (2048, 512, 64), (2122, 18.8)),
        ("Llama-3.1-70B", "H200-SXM", "vllm", "fp8", {}, (8192, 1024, 16), (2163, 47.5)),
        ("Llama-3.1-70B", "B200-SXM", "vllm", "nvfp4", {"tensor": 2}, (8192, 1024, 32), (808, 20.9)),
        ("Llama-3.1-70B", "B200-SXM", "trtllm", "fp8", {"tensor": 4}, (8192, 1024, 64), (963, 23.7)),
        ("gpt-oss-120b", "H200-SXM", "vllm", "mxfp4", {"tensor": 2}, (8192, 1024, 32), (630, 15.7)),
        ("gpt-oss-120b", "B200-SXM", "vllm", "mxfp4", {"tensor": 4}, (8192, 1024, 32), (140, 5.3)),
        ("DeepSeek-V3", "B200-SXM", "trtllm", "nvfp4", {"tensor": 8}, (1024, 1024, 32), (228, 14.0)),
        ("DeepSeek-V3", "H200-SXM", "sglang", "fp8", {"tensor": 8}, (8192, 1024, 16), (None, 20.4)),
    ],
)
def test_public_runs_are_met(name, sku, engine, weights, degrees, shape, measured):
    """One run for each kind of model, device and engine: intervals within a fifth, first tokens within a half."""
    kv_cache = "bf16" if weights == "bf16" else "fp8"
    built = Worker.checked(
        model=catalog.model(name),
        device=catalog.device(sku),
        cut=Parallelism(**degrees),
        precision=Precision(weights=weights, kv_cache=kv_cache),
        engine=catalog.engine(engine),
    )
    prompt, output, concurrency = shape
    times = closed_loop(run(built, concurrency, prompt, output))
    assert times.itl_s * 1e3 == pytest.approx(measured[1], rel=0.2)
    if measured[0] is not None:
        assert times.ttft_s * 1e3 == pytest.approx(measured[0], rel=0.5)


def test_prefill_workers_take_prompts_off_the_decode_steps():
    """DeepSeek-V3 on H200, five prefill workers of 8 and three decode workers of 8 ranks, 768 clients, 8192 in and 1024 out:
    published 44.0 ms per token."""
    cells = {"model": "deepseek-ai/DeepSeek-V3", "engine": "trtllm", "n_gpu": 64, "tp": "", "isl": 8192, "concurrency": 768}
    apart, _ = run_of(row(**cells, mode="disagg", notes="disagg P5(tp8 adp1 mep8 bs1) D3(tp1 adp8 mep8 bs32)"))
    assert (apart.prefill.replicas, apart.decode.replicas) == (5, 3)
    assert apart.decode.worker.cut == Parallelism(attention_data=8, expert=8)
    times = closed_loop(apart)
    assert times.itl_s * 1e3 == pytest.approx(44.0, rel=0.3)
    together = Run(decode=apart.decode, prompt_tokens=8192.0, output_tokens=1024.0, concurrency=768.0)
    assert times.itl_s < closed_loop(together).itl_s


@pytest.mark.parametrize(
    ("gpu", "notes", "n_gpu", "concurrency", "ttft_ms", "tpot_ms"),
    [
        # rows of silicon_sample.csv in the Apache-2.0 package aiconfigurator
        ("gb200", "disagg P1(tp4 adp1 mep4 bs1) D3(tp8 adp1 mep8 bs16)", 28, 48, 906.7, 10.69),
        ("gb200", "disagg P1(tp1 adp4 mep4 bs1) D4(tp8 adp1 mep8 bs11)", 36, 44, 796.0, 8.78),
        ("gb200", "disagg P1(tp4 adp1 mep4 bs1) D3(tp8 adp1 mep8 bs2)", 28, 6, 288.4, 7.52),
    ],
)
def test_public_runs_of_workers_apart_are_met(gpu, notes, n_gpu, concurrency, ttft_ms, tpot_ms):
    """DeepSeek-V3 NVFP4 with TensorRT-LLM, 8192 in and 1024 out: both times within a quarter; no fit has seen them."""
    cells = {"model": "deepseek-ai/DeepSeek-V3", "dtype": "fp4", "gpu": gpu, "engine": "trtllm", "tp": "", "isl": 8192}
    (found,) = predict([row(**cells, n_gpu=n_gpu, concurrency=concurrency, mode="disagg", notes=notes)])
    assert found.times.itl_s * 1e3 == pytest.approx(tpot_ms, rel=0.25)
    assert found.times.ttft_s * 1e3 == pytest.approx(ttft_ms, rel=0.25)


def test_the_hand_over_of_a_cache_is_part_of_the_first_token():
    """A tenth of the network delays it by nine times what the cache takes on the whole of it; intervals stay."""
    cells = {"model": "deepseek-ai/DeepSeek-V3", "engine": "trtllm", "n_gpu": 64, "tp": "", "isl": 8192, "concurrency": 24}
    apart, _ = run_of(row(**cells, mode="disagg", notes="disagg P5(tp8 adp1 mep8 bs1) D3(tp1 adp8 mep8 bs32)"))
    built = apart.decode.worker
    slow_nic = replace(built, device=replace(built.device, nic_bandwidth=built.device.nic_bandwidth / 10.0))
    slow = replace(apart, decode=replace(apart.decode, worker=slow_nic))
    cache = kv_shape(built.model, built.precision, built.cut).held(8192.0)
    later = closed_loop(slow).ttft_s - closed_loop(apart).ttft_s
    assert later == pytest.approx(9.0 * cache / built.device.nic_bandwidth, rel=0.05)
    assert closed_loop(slow).itl_s == pytest.approx(closed_loop(apart).itl_s, rel=0.01)


@pytest.mark.parametrize(
    ("cells", "cut", "replicas"),
    [
        ({"tp": 4}, {"tensor": 4}, 2),
        ({"tp": 2, "pp": 2}, {"tensor": 2, "pipeline": 2}, 2),
        ({"model": "Qwen3-235B-A22B-FP8", "moe_tp": 2, "moe_ep": 4}, {"tensor": 8, "expert": 4}, 1),
        (
            {"model": "MiniMax-M2.5", "n_gpu": 4, "tp": 2, "attention_dp": 2, "moe_tp": 2, "moe_ep": 2},
            {"tensor": 2, "attention_data": 2, "expert": 2},
            1,
        ),
    ],
)
def test_degrees_are_read_as_they_stand(cells, cut, replicas):
    """Tensor, pipeline, attention data and expert parallelism, and how many replicas the devices hold."""
    read, note = run_of(row(**cells))
    assert (read.decode.worker.cut, read.decode.replicas) == (Parallelism(**cut), replicas)
    assert note == ""


@pytest.mark.parametrize(
    ("model", "degrees", "cut"),
    [
        ("MiniMax-M2.5", (16, 4, 4, 1, 16), {"attention_data": 4, "expert": 4}),
        ("DeepSeek-V3", (64, 1, 64, 8, 8), {"attention_data": 8, "expert": 8}),
        ("DeepSeek-V3", (8, 64, 1, 8, 8), {"tensor": 8, "expert": 8}),
        ("Qwen3-235B-A22B", (1, 1, 1, 4, 1), {"attention_data": 4}),
    ],
)
def test_degrees_that_count_experts_twice_are_read_as_they_are_meant(model, degrees, cut):
    """Public tables write the expert degree into the tensor or attention-data degree too; the reading is noted."""
    names = ("n_gpu", "tp", "attention_dp", "moe_tp", "moe_ep")
    read, note = run_of(row(model=model, **dict(zip(names, degrees, strict=True))))
    assert (read.decode.worker.cut, read.decode.replicas) == (Parallelism(**cut), 1)
    assert note.startswith("read as")


def test_checkpoints_that_draft_unflagged_are_read_so():
    """DeepSeek-R1 on TensorRT-LLM: published 11.2 ms at concurrency 16, 8192 in, 1024 out, on 8 B200 in FP8; the
    same architecture as V3 takes 21.6."""
    cells = {"gpu": "b200_sxm", "engine": "trtllm", "isl": 8192, "moe_tp": 8}
    drafted, plain = predict([row(model=f"deepseek-ai/DeepSeek-{name}", **cells) for name in ("R1", "V3")])
    assert "multi-token prediction" in drafted.reason
    assert plain.reason == ""
    assert drafted.times.itl_s < 0.8 * plain.times.itl_s
    assert drafted.times.itl_s * 1e3 == pytest.approx(11.2, rel=0.3)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"model": "Llama-3.1-7OB"}, "no model card is called 'Llama-3.1-7OB'; did you mean Llama-3.1-70B"),
        ({"gpu": "h20O"}, "no device card is called 'h20O'; did you mean"),
        ({"engine": "vlm"}, "no engine card is called 'vlm'; did you mean vllm"),
        ({"dtype": "fp7"}, "dtype 'fp7' is unknown; known are bf16"),
        ({"concurrency": "max"}, "concurrency is 'max', not a number"),
        ({"osl": ""}, "osl is empty"),
        ({"tp": 3, "n_gpu": 3}, "tensor degree 3 does not cut"),
        ({"gpu": "L4", "tp": 1, "n_gpu": 1}, "weights of"),
        ({"mode": "disagg"}, "need worker counts in `notes`"),
        ({"mode": "decode-only"}, "mode 'decode-only' is neither"),
    ],
)
def test_rows_that_cannot_be_predicted_say_why_and_the_others_go_on(cells, reason):
    """An unknown name gets the nearest one."""
    bad, good = predict([row(**cells), row()])
    assert bad.times is None
    assert reason in bad.reason
    assert good.times is not None
    assert good.reason == ""
