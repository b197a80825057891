"""Readers of cards that users bring refuse what makes no sense and say where and why."""

import copy
import pickle

import pytest

from epd_models import catalog
from epd_models.catalog import CardError
from epd_models.catalog.coefficient_card import coefficients_from_card
from epd_models.catalog.tariff_card import constants_from_card
from epd_models.provenance import Confidence, FittedError


def changed(card, path, value):
    """A copy of a card with one value set, or removed where the value is None."""
    card = copy.deepcopy(card)
    *parents, key = path.split(".")
    place = card
    for parent in parents:
        place = place[int(parent) if parent.isdigit() else parent]
    if value is None:
        del place[key]
    else:
        place[key] = value
    return card


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("memory.capacity_gb", None, r"H100-SXM: memory: 'capacity_gb' is missing"),
        ("memory.capacity_gb", -80, "memory.capacity_gb: expected a number above 0, found -80"),
        ("memory.capacity_gb", "80 GB", "memory.capacity_gb: expected a number, found '80 GB'"),
        ("memory.capacity_gb", True, "expected a number, found True"),
        ("memory.bandwith_gb_per_s", 3350, "'bandwith_gb_per_s' is not a key .* did you mean 'bandwidth_gb_per_s'"),
        ("compute.bf16_tflops", None, "'bf16_tflops|compute.bf16_tflops"),
        ("kind", "cpu", "kind: expected one of gpu, npu, tpu, asic, found 'cpu'"),
        ("formats.weights", ["bf16", "fp4"], "formats.weights: 'fp4' is not one of"),
        ("formats.weights", "bf16", "formats.weights: expected a list, found 'bf16'"),
        ("power.idle_w", 701, "idle power 701 W exceeds"),
        ("power.host_power_factor", 0.9, "expected at least 1, found 0.9"),
        ("logical_devices_per_unit", 1.5, "expected a whole number, found 1.5"),
        ("shapes", {"batch": [4, 2]}, "strictly ascending"),
        ("link", 450, "link: expected a mapping, found 450"),
        ("confidence", "certain", "confidence: expected one of"),
        ("coefficients", {"from": "hopper", "vllm": {"bandwidth_share": 1.4}}, "at most 1, found 1.4"),
        ("coefficients", {"default": {"bandwidth_share": 0.8}}, "lack prefill_share"),
    ],
)
def test_a_broken_device_card_is_refused(path, value, complaint):
    """Unknown and missing keys, wrong types and impossible values raise an error that names the place."""
    card = changed(catalog.device_card("H100-SXM"), path, value)
    with pytest.raises(CardError, match=complaint):
        catalog.device_from_card(card)


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("language_model.layers", 47, r"layers of the groups add up to 12 \+ 36, the model has 47"),
        ("language_model.dense_layers", 1, "1 dense and 48 expert layers, the model has 48"),
        ("language_model.active_parameters_billions", 200, "200 active of 122.11"),
        ("attention.0.kv_heads", 3, "32 query heads cannot share 3"),
        ("attention.1.state_bytes", None, r"attention\[1\]: 'state_bytes' is missing"),
        ("experts.active", 300, "300 active of 256"),
        ("vision.rule", "native_resolutions", "did you mean 'native_resolution'"),
        ("vision.rule_parameters", {"min_tokens": 4}, "the rule native_resolution needs max_tokens"),
        ("vision.full_attention_layers", 4, "need a window"),
        ("name", None, "'name' is missing"),
    ],
)
def test_a_broken_model_card_is_refused(path, value, complaint):
    """Layers must add up, heads must divide, and the token rule must have its numbers."""
    card = changed(catalog.model_card("Qwen3.5-122B-A10B"), path, value)
    with pytest.raises(CardError, match=complaint):
        catalog.architecture_from_card(card)


def test_the_source_of_a_users_card_is_kept():
    """A card that states no confidence is the user's word; messages name its file."""
    card = catalog.device_card("H100-SXM")
    del card["confidence"], card["source"]
    assert catalog.device_from_card(card, source="mine.yaml").provenance["card"].source == "mine.yaml"
    assert catalog.device_from_card(card).provenance["card"].confidence is Confidence.USER
    with pytest.raises(CardError, match=r"mine.yaml \(H100-SXM\): 'colour'"):
        catalog.device_from_card(card | {"colour": "green"}, source="mine.yaml")


def test_changing_a_card_leaves_the_catalogue_alone():
    """Cards are handed out as copies."""
    catalog.device_card("H100-SXM")["memory"]["capacity_gb"] = 1
    assert catalog.device_card("H100-SXM")["memory"]["capacity_gb"] == 80


def test_a_device_overrides_its_architectures_coefficients():
    """A device's default beats the architecture's engines, its engine beats both, and provenance follows the figure."""
    merged = coefficients_from_card(
        {"from": "hopper", "default": {"step_overhead_ms": 9}, "sglang": {"link_share": 0.5}},
        path="mine",
        source="my bench",
        confidence=Confidence.MEASURED,
    )
    assert merged["vllm"].step_overhead_s == pytest.approx(9e-3)
    assert merged["sglang"].link_share == 0.5
    assert merged["sglang"].step_overhead_s == pytest.approx(9e-3)
    assert merged["default"].bandwidth_share == catalog.device("H100-SXM").coefficients["default"].bandwidth_share
    assert merged["vllm"].provenance.source == "my bench"


def test_fitted_coefficients_say_how_far_they_are_off():
    """The error of a fit is read with its figures, and figures that override them do not inherit it."""
    device = catalog.device("H100-SXM")
    assert device.coefficients_for("vllm").provenance.error_of("itl").median < 0.3
    assert device.coefficients_for("nobody").provenance.fitted_error == ()
    errors = {"itl": {"median": 0.07, "p90": 0.4, "points": 343}, "image": {"median": 0.1, "points": 4, "held_out": False}}
    card = {"from": "hopper", "vllm": {"step_overhead_ms": 9}, "sglang": {"step_overhead_ms": 9, "fitted_error": errors}}
    merged = coefficients_from_card(card, path="mine", source="my bench", confidence=Confidence.MEASURED)
    assert merged["vllm"].provenance.fitted_error == ()
    assert merged["sglang"].provenance.error_of("itl") == FittedError(quantity="itl", median=0.07, p90=0.4, points=343)
    assert not merged["sglang"].provenance.error_of("image").held_out
    assert merged["sglang"].provenance.error_of("ttft") is None


@pytest.mark.parametrize(
    ("errors", "complaint"),
    [
        ({"tpot": {"median": 0.1, "points": 3}}, "'tpot' is not a key"),
        ({"itl": {"median": 0.1}}, "'points' is missing"),
        ({"itl": {"median": -0.1, "points": 3}}, "at least 0"),
        ({"itl": 0.1}, "expected a mapping"),
    ],
)
def test_fitted_errors_that_make_no_sense_are_refused(errors, complaint):
    """An error of a fit needs a known quantity, a median and the number of points behind it."""
    with pytest.raises(catalog.CardError, match=complaint):
        coefficients_from_card(
            {"from": "hopper", "vllm": {"fitted_error": errors}}, path="mine", source="x", confidence=Confidence.USER
        )


def test_unknown_coefficients_are_an_unknown_card():
    """A card that starts from coefficients nobody has says which there are."""
    card = changed(catalog.device_card("H100-SXM"), "coefficients", "hoper")
    with pytest.raises(catalog.UnknownCard, match="hopper"):
        catalog.device_from_card(card)


def test_a_tariff_needs_order():
    """Low, typical and high stand in order."""
    card = {"name": "x", "constants": {"pue": {"low": 1.5, "typical": 1.2, "unit": "ratio", "source": "me"}}}
    with pytest.raises(CardError, match="low <= typical <= high"):
        constants_from_card(card)


def test_errors_cross_process_borders():
    """Workers of a study send errors back pickled."""
    error = pickle.loads(pickle.dumps(CardError("card: key", "wrong")))
    assert (error.path, error.message) == ("card: key", "wrong")
    unknown = pickle.loads(pickle.dumps(catalog.UnknownCard("a", "device", ["b"])))
    assert (unknown.name, unknown.kind, unknown.nearest) == ("a", "device", ["b"])
