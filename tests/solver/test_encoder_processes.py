"""How many encoder processes a device runs, and what they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context
from epd_models.placement.table import PLACEMENTS
from epd_models.pool import Pool, Settings
from epd_opt.instance import Instance
from epd_opt.offering import context_of, loads_of
from epd_opt.resolve import Resolved, resolve
from support.documents import modelled


def resolved(**changes: Any) -> tuple[Resolved, Context]:
    found = resolve(Instance.model_validate(modelled(**changes)))
    return found, context_of(found, loads_of(found)[0])


def pool(placement: str, device: int = 0, **changes: Any) -> Pool:
    found, context = resolved(**changes)
    settings = Settings(itl_level_s=0.05, burst_share=0.3)
    return PLACEMENTS[placement].build(context, found.entries[device], Parallelism(), settings)


def test_a_device_of_their_own_holds_more_of_them() -> None:
    """Two beside a language model and four alone, unless the instance says how many."""
    assert [pool("shared").encoder_processes, pool("encoder_pool", 1).encoder_processes] == [2, 4]
    said = {"engine": {"name": "vllm", "encoder_processes": 3}}
    assert [pool("shared", **said).encoder_processes, pool("encoder_pool", 1, **said).encoder_processes] == [3, 3]


def test_cores_and_memory_limit_them() -> None:
    """A process needs a core (24 for eight cards) and memory: 24 GB hold one tower of six billion parameters."""
    few = [{"sku": "L4", "price": {"usd_per_hour": 0.7}, "stages": ["encode"], "host_cores": 24}]
    assert pool("encoder_pool", devices=few).encoder_processes == 3
    assert pool("encoder_pool", devices=few, model="InternVL3-38B").encoder_processes == 1


def test_only_a_loop_that_encodes_in_line_stands_still() -> None:
    """An integrated loop loses host and device seconds of each image, a shared one a part of the device's; reading prompts
    for encoders elsewhere it loses none, but iterations beside encoders last longer."""
    _, context = resolved()
    loops = {name: pool(name).loop for name in ("integrated", "shared", "prefill_decode")}
    lost = {name: next(c.encode for c in loop.classes if c.name == "photo") for name, loop in loops.items() if loop}
    time = parts.encode_times(context, resolved()[0].entries[0])["photo"]
    assert lost["integrated"] == pytest.approx(2 * time.serial_s)
    assert lost["shared"] == pytest.approx(2 * context.engine.shared_stall * time.device_s)
    assert lost["prefill_decode"] == 0.0
    steps = {name: loop.step for name, loop in loops.items() if loop}
    assert steps["shared"] == pytest.approx(steps["integrated"] * (1.0 + context.engine.shared_drag))
    assert steps["prefill_decode"] == steps["integrated"]


def test_sources_are_decoded_side_by_side() -> None:
    """Two at a time in each process, as far as there are cores; larger sources delay first tokens and not the loop."""
    found, context = resolved()
    time, entry = parts.encode_times(context, found.entries[0])["photo"], found.entries[0]
    counts = np.array([1.0, 2.0, 3.0, 9.0])
    assert parts.decoding_s(time, entry, counts, 1) / time.decode_s == pytest.approx([1, 1, 2, 5])
    assert parts.decoding_s(time, entry, counts, 4) / time.decode_s == pytest.approx([1, 1, 1, 2])
    classes = modelled()["workload"]["classes"]
    classes[1]["images"] = {"count": 2, "tokens": 256, "source_megapixels": 1.0}
    small = pool("integrated", workload={"classes": classes})
    classes[1]["images"]["source_megapixels"] = 9.0
    large = pool("integrated", workload={"classes": classes})
    assert small.loop is not None
    assert large.loop is not None
    assert [c.encode for c in large.loop.classes] == [c.encode for c in small.loop.classes]
    own = [next(hop.own_s for hop in built.hops if hop.name == "photo") for built in (small, large)]
    assert own[1] - own[0] == pytest.approx(8.0 * context.engine.host_megapixel_s)
