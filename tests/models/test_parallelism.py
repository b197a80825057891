"""Replicas are cut only in ways that engines can run, and every refusal says what would fit."""

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models import catalog
from epd_models.parallelism import IllegalParallelism, Parallelism, check_legal, link_bandwidth, tensor_degrees

H200 = catalog.device("H200-SXM")


def degrees_in(message):
    """The degrees that a message offers."""
    return [int(number) for number in re.findall(r"\d+", message.rsplit("degrees that do:", 1)[1])]


@pytest.mark.parametrize(
    ("name", "legal", "illegal"),
    [
        ("Llama-3.1-70B", [1, 2, 4, 8, 16, 64], [3, 5, 7, 128]),
        ("InternVL3-8B", [1, 2, 4], [7, 8, 14, 28]),
        ("Qwen3.5-27B", [1, 2, 4, 8], [3, 6, 16]),
        ("Qwen3.5-122B-A10B", [1, 2, 16], [32, 64]),
        ("DeepSeek-V3", [1, 8, 16], [3, 6]),
    ],
)
def test_tensor_degrees_divide_heads_and_share_or_repeat_key_value_heads(name, legal, illegal):
    """28 heads with 4 key/value heads go on 4 ranks but not on 7; 24 heads and 16 linear key heads go on 8, not on 3;
    32 heads beside 16 linear key heads go on 16, not on 32."""
    degrees = tensor_degrees(catalog.model(name))
    assert set(legal) <= set(degrees)
    assert not set(illegal) & set(degrees)


def test_a_refused_tensor_degree_offers_degrees_that_pass():
    """Each degree in the message is legal where the server is large enough."""
    model = catalog.model("Qwen2.5-VL-7B")
    with pytest.raises(IllegalParallelism, match="28 heads with 4 key/value heads") as refusal:
        check_legal(Parallelism(tensor=8), model, H200)
    assert degrees_in(str(refusal.value)) == [1, 2, 4]
    for degree in degrees_in(str(refusal.value)):
        check_legal(Parallelism(tensor=degree), model, H200)


def test_a_refused_expert_degree_offers_degrees_that_pass():
    """Experts spread over a divisor of the ranks and of the experts."""
    model = catalog.model("DeepSeek-V3")
    with pytest.raises(IllegalParallelism, match="expert degree 3") as refusal:
        check_legal(Parallelism(tensor=4, attention_data=2, expert=3), model, H200)
    assert degrees_in(str(refusal.value)) == [1, 2, 4, 8]
    for degree in degrees_in(str(refusal.value)):
        check_legal(Parallelism(tensor=4, attention_data=2, expert=degree), model, H200)


def test_experts_spread_evenly():
    """160 experts go whole on 32 of 64 ranks, two ranks each, but not one by one on 64."""
    model, rack = catalog.model("Qwen3-Coder-480B-A35B"), catalog.device("GB200")
    check_legal(Parallelism(tensor=32, attention_data=2, expert=32), model, rack)
    with pytest.raises(IllegalParallelism, match="160 routed experts") as refusal:
        check_legal(Parallelism(tensor=32, attention_data=2, expert=64), model, rack)
    assert degrees_in(str(refusal.value)) == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize(
    ("cut", "model", "sku", "text"),
    [
        (Parallelism(expert=2), "Llama-3.1-8B", "H200-SXM", "needs a mixture of experts"),
        (Parallelism(attention_data=2), "Llama-3.1-8B", "H200-SXM", "further replicas"),
        (Parallelism(pipeline=64), "Llama-3.1-8B", "GB200", "exceeds the 32 layers"),
        (Parallelism(tensor=16), "Llama-3.1-70B", "H200-SXM", "links 8 at the most"),
        (Parallelism(tensor=8, attention_data=2, expert=16), "DeepSeek-V3", "H200-SXM", "links 8 at the most"),
        (Parallelism(pipeline=6), "Llama-3.1-8B", "RBLN-ATOM-Max-CA25", "a divisor or a multiple of 4"),
    ],
)
def test_what_cannot_be_built_is_refused_with_the_reason(cut, model, sku, text):
    """Dense models, short models, small domains and shared units each have their own refusal."""
    with pytest.raises(IllegalParallelism, match=text):
        check_legal(cut, catalog.model(model), catalog.device(sku))


def test_tensor_parallelism_crosses_servers_only_inside_a_scale_up_domain():
    """Sixteen GB200 sit in one NVLink domain though a server holds four; sixteen H200 do not."""
    cut = Parallelism(tensor=16)
    check_legal(cut, catalog.model("Llama-3.1-70B"), catalog.device("GB200"))
    assert link_bandwidth(cut, catalog.device("GB200")) == catalog.device("GB200").scaleup_bandwidth


def test_tensor_parallelism_without_scale_up_links_runs_at_pcie_speed():
    """L40S has no NVLink; eight in a server are legal, at PCIe speed; a pair of H100 PCIe has a bridge, four have not."""
    l40s, pair = catalog.device("L40S"), catalog.device("H100-PCIe")
    check_legal(Parallelism(tensor=8), catalog.model("Llama-3.1-70B"), l40s)
    assert link_bandwidth(Parallelism(tensor=8), l40s) == l40s.pcie_bandwidth
    assert link_bandwidth(Parallelism(tensor=2), pair) == pair.scaleup_bandwidth
    assert link_bandwidth(Parallelism(tensor=4), pair) == pair.pcie_bandwidth


def test_devices_without_any_link_stand_alone():
    """A card that lists neither scale-up links nor PCIe gives single devices only."""
    lonely = dataclasses.replace(H200, scaleup_bandwidth=0.0, scaleup_domain=1, pcie_bandwidth=0.0)
    check_legal(Parallelism(), catalog.model("Llama-3.1-8B"), lonely)
    with pytest.raises(IllegalParallelism, match="no link"):
        check_legal(Parallelism(tensor=2), catalog.model("Llama-3.1-8B"), lonely)


def test_degrees_start_at_one():
    """Zero and negative degrees are no cut at all."""
    with pytest.raises(IllegalParallelism, match="pipeline degree must be at least 1, found 0"):
        Parallelism(pipeline=0)


@settings(max_examples=150, deadline=None)
@given(
    name=st.sampled_from(catalog.model_names()),
    sku=st.sampled_from(catalog.device_names()),
    tensor=st.integers(1, 64),
    pipeline=st.integers(1, 8),
    attention_data=st.integers(1, 8),
    expert=st.integers(1, 64),
)
def test_every_cut_is_legal_or_refused(name, sku, tensor, pipeline, attention_data, expert):
    """Nothing but the refusal escapes; what passes has a link and spreads evenly."""
    model, device = catalog.model(name), catalog.device(sku)
    cut = Parallelism(tensor=tensor, pipeline=pipeline, attention_data=attention_data, expert=expert)
    try:
        check_legal(cut, model, device)
    except IllegalParallelism:
        return
    ranks = tensor * attention_data
    assert all(group.heads % tensor == 0 for group in model.attention)
    assert ranks % expert == 0
    assert cut.logical_devices == 1 or link_bandwidth(cut, device) > 0
    units = device.units(cut.logical_devices)
    assert units.denominator == 1 or units.numerator == 1
