"""The cards of the catalogue agree with each other, with their schema and with what their sources print."""

import json
import re
from pathlib import Path

import pytest

from epd_models import catalog
from epd_models.catalog import store
from epd_models.catalog.counting import language_model_parameters
from epd_models.provenance import Confidence

GIB = 2**30


@pytest.mark.parametrize("name", catalog.device_names())
def test_every_device_card_reads(name):
    """Each device card turns into a device of the same name, whose figures carry a source."""
    device = catalog.device(name)
    assert device.sku == name
    assert device.memory_bytes > 0
    assert device.bandwidth > 0
    assert set(device.provenance) >= {"card", "compute", "memory", "power", "link", "formats", "server"}
    assert device.provenance["card"].source
    assert device.provenance["card"].confidence < Confidence.USER


@pytest.mark.parametrize("name", catalog.model_names())
def test_every_model_card_agrees_with_its_shapes(name):
    """Parameters on a card are what its shapes add up to, within two per cent."""
    model = catalog.model(name)
    total, active = language_model_parameters(
        hidden=model.hidden,
        vocab=model.vocab,
        tied_embeddings=model.tied_embeddings,
        attention=model.attention,
        dense_layers=model.dense_layers,
        dense_intermediate=model.dense_intermediate,
        experts=model.experts,
        output_gate="gated query" in (model.provenance.note or "") or name.startswith("Qwen3.5"),
    )
    assert total == pytest.approx(model.parameters, rel=0.02)
    assert active == pytest.approx(model.active_parameters, rel=0.02)


@pytest.mark.parametrize("kind", ["device", "model", "engine", "coefficients"])
def test_the_head_of_a_card_names_what_the_whole_card_names(kind):
    """The alias index reads only the head of a card; the whole card must say the same."""
    for name in store.names(kind):
        card = store.card(kind, name)
        assert card.get("sku", card.get("name")) == name
        for alias in card.get("aliases", []):
            assert store.canonical_name(kind, alias) == name


@pytest.mark.parametrize("kind", ["device", "model", "engine", "coefficients", "tariff"])
def test_cards_hold_plain_data(kind):
    """Cards survive JSON unchanged, so that plans can embed them."""
    for name in store.names(kind):
        card = store.card(kind, name)
        assert json.loads(json.dumps(card, allow_nan=False)) == card


@pytest.mark.parametrize("kind", ["device", "model"])
def test_file_names_are_card_names(kind):
    """A card is found in the folder by its name."""
    folder = Path(store.__file__).parent / f"{kind}s"
    assert sorted(p.stem for p in folder.glob("*.yaml")) == sorted(n.lower() for n in store.names(kind))


def test_cards_do_not_speak_of_how_they_were_made():
    """Cards speak of hardware and models alone."""
    folder = Path(store.__file__).parent
    for path in folder.rglob("*.yaml"):
        assert not re.search(r"session|re-verified in|re-read|not asked for", path.read_text(encoding="utf-8")), path


def test_logical_devices_share_a_unit():
    """An ATOM-Max is four devices of 15.7 GiB whose memory does not pool, on one PCIe link and one power budget."""
    device = catalog.device("RBLN-ATOM-Max-CA25")
    assert device.logical_per_unit == 4
    assert device.memory_bytes == pytest.approx(15.7 * GIB)
    assert device.bandwidth == pytest.approx(1024e9 / 4)
    assert device.peaks["bf16"] == pytest.approx(32e12)
    assert device.pcie_bandwidth == pytest.approx(64e9 / 4)
    assert device.tdp_w == 350
    assert device.scaleup_domain == 32
    assert device.batch_shapes[-1] == 64
    assert device.kv_reservation == "full"


def test_scaleup_domains_count_logical_devices():
    """A domain printed in units is counted in logical devices; no domain stays none."""
    assert catalog.device("Ascend-910C").scaleup_domain == 768
    assert catalog.device("Ascend-910C").scaleup_bandwidth == pytest.approx(196e9)
    assert catalog.device("GB200").scaleup_domain == 72
    assert catalog.device("Cloud-AI-100-Ultra").scaleup_domain == 1


def test_usable_memory_is_what_drivers_report():
    """GB300 reports 284,208 MiB, an L40S at least 45,776 MiB; a network card is printed in gigabits."""
    assert catalog.device("GB300").memory_bytes == pytest.approx(284208 * 2**20, rel=1e-4)
    assert catalog.device("L40S").memory_bytes == pytest.approx(45776 * 2**20, rel=1e-4)
    assert catalog.device("H100-SXM").nic_bandwidth == pytest.approx(50e9)


def test_prices_keep_what_is_public():
    """A median rent and a typical purchase price, None where nothing is public or only a range was guessed."""
    gb200 = catalog.device("GB200").price
    assert (gb200.usd_per_hour, gb200.purchase_usd) == (4.54, 43000)
    guessed = catalog.device("RBLN-REBEL100-CR13").price
    assert (guessed.usd_per_hour, guessed.purchase_usd) == (None, None)
    offers = catalog.device_card("H100-SXM")["price"]["offers"]
    assert {"provider": "verda", "usd_per_hour": 2.29, "term": "on-demand"}.items() <= offers[0].items()


def test_coefficients_differ_by_engine_and_device():
    """An engine's own figures beat the default ones, and missing engines fall back to it."""
    hopper = catalog.device("H100-SXM")
    printed = store.card("coefficients", "hopper")
    assert printed["trtllm"]["step_overhead_ms"] != printed["default"]["step_overhead_ms"]
    assert hopper.coefficients_for("trtllm").step_overhead_s * 1e3 == pytest.approx(printed["trtllm"]["step_overhead_ms"])
    assert hopper.coefficients_for("trtllm").encode_share == hopper.coefficients_for("vllm").encode_share
    assert hopper.coefficients_for("unheard-of") == hopper.coefficients["default"]
    assert catalog.device("RBLN-REBEL100-CR13").coefficients_for("vllm").bandwidth_share == 0.56


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("Qwen2.5-VL-7B", 57344),
        ("Qwen3.5-122B-A10B", 24576),
        ("Llama-3.1-70B", 327680),
        ("Gemma-3-27B", 81920),
        ("gpt-oss-120b", 36864),
        ("DeepSeek-V3", 70272),
        ("LLaVA-1.5-7B", 524288),
        ("Llama-3.2-11B-Vision", 163840 * 32 // 40),
    ],
)
def test_layers_with_a_growing_cache_give_the_published_kv_size(name, bytes_per_token):
    """bf16 bytes per token of the layers whose cache grows with the context."""
    size = 0
    for group in catalog.model(name).attention:
        if group.kind == "full":
            size += group.layers * 2 * group.kv_heads * group.head_dim * 2
        elif group.kind == "mla":
            size += group.layers * group.latent_dim * 2
    assert size == bytes_per_token


def test_particular_attention_is_kept():
    """Linear state, sliding windows, cross-attention and compressed queries are on the cards."""
    linear = catalog.model("Qwen3.5-122B-A10B").attention[1]
    assert (linear.kind, linear.layers, linear.state_bytes) == ("linear", 36, 75497472)
    assert catalog.model("gpt-oss-20b").attention[1].window == 128
    assert catalog.model("Llama-4-Scout-17B-16E").attention[1].window == 8192
    assert catalog.model("Llama-3.2-90B-Vision").attention[1].positions == 6404
    assert catalog.model("DeepSeek-R1").attention[0].query_latent_dim == 1536
    assert catalog.model("Llama-4-Maverick-17B-128E").dense_layers == 24
    assert catalog.model("gpt-oss-120b").native_weights == "mxfp4"


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("h100_sxm", "H100-SXM"),
        ("gb200", "GB200"),
        ("rtx_pro_6000_server", "RTX-PRO-6000-SE"),
        ("arc_pro_b60", "Arc-Pro-B60"),
        ("NVIDIA B200-SXM-180GB", "B200-SXM"),
        ("AMD Instinct MI325X 256GB HBM3e", "MI325X"),
    ],
)
def test_devices_answer_to_the_names_that_measurements_use(asked, name):
    """Spellings of public measurement tables lead to the card."""
    assert catalog.device(asked).sku == name


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("Qwen/Qwen3.5-122B-A10B", "Qwen3.5-122B-A10B"),
        ("meta-llama/Meta-Llama-3.1-70B", "Llama-3.1-70B"),
        ("nvidia/Llama-3.3-70B-Instruct", "Llama-3.1-70B"),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-V3"),
        ("MiniMaxAI/MiniMax-M2.5", "MiniMax-M2.5"),
        ("llama2-70b-99.9", "Llama-2-70B"),
        ("QWEN3-VL-4B-INSTRUCT", "Qwen3-VL-4B"),
    ],
)
def test_models_answer_to_the_names_that_measurements_use(asked, name):
    """Hugging Face identifiers and benchmark names lead to the card, whatever the case."""
    assert catalog.model(asked).name == name


def test_near_names_do_not_match():
    """Another spelling than a name or an alias is unknown, and the nearest names are offered."""
    with pytest.raises(catalog.UnknownCard, match="H100-SXM") as caught:
        catalog.device("H100 SXM")
    assert caught.value.nearest[0] == "H100-SXM"
    assert (caught.value.name, caught.value.kind) == ("H100 SXM", "device")


def test_engines_and_tariff():
    """Engine cards turn into SI units; every tariff constant keeps its range, unit and source."""
    vllm = catalog.engine("vllm")
    assert vllm.encoder_cache_bytes == 4 * GIB
    assert vllm.host_megapixel_s == pytest.approx(0.015)
    assert set(catalog.engine_names()) == {"vllm", "sglang", "trtllm", "generic", "tuned"}
    pue = catalog.tariff()["pue"]
    assert (pue.low, pue.typical, pue.high, pue.unit) == (1.1, 1.25, 1.58, "ratio")
    assert pue.confidence is Confidence.THIRD_PARTY
    assert len(catalog.tariff()) == 20
