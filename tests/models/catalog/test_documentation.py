"""The examples in docs/catalog.md are cards that read."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from epd_models import catalog
from epd_models.provenance import Confidence
from epd_models.vision import IMAGE_RULES

PAGE = (Path(__file__).parents[3] / "docs" / "catalog.md").read_text(encoding="utf-8")
BLOCKS = [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)]


def block(key):
    """The example that has a key at its top."""
    return next(example for example in BLOCKS if key in example)


def test_the_example_device_reads():
    """The smallest device card is complete."""
    device = catalog.device_from_card(block("sku"), source="my-npu.yaml")
    assert device.memory_bytes == 48e9
    assert device.coefficients_for("vllm").bandwidth_share == 0.65
    assert device.price.purchase_usd == 9000
    assert device.scaleup_domain == 8


def test_the_example_device_holds_nothing_needless():
    """Leaving out any part that the page calls needed makes the card incomplete."""
    for key in ("sku", "kind", "compute", "memory", "power", "server", "formats", "coefficients"):
        card = {k: v for k, v in block("sku").items() if k != key}
        with pytest.raises(catalog.CardError, match=f"'{key}' is missing"):
            catalog.device_from_card(card)


def test_the_example_model_reads():
    """The smallest model card is complete."""
    model = catalog.architecture_from_card(block("language_model"))
    assert model.parameters == pytest.approx(8.03e9)
    assert model.vision is None


def test_the_example_override_reads():
    """Overriding coefficients works as the page says."""
    card = block("sku") | {"coefficients": block("coefficients")["coefficients"]}
    vllm = catalog.device_from_card(card).coefficients_for("vllm")
    assert (vllm.bandwidth_share, vllm.step_overhead_s) == (0.7, pytest.approx(3.1e-3))


def test_the_page_lists_all_rules_and_confidences():
    """Tables of the page follow the code."""
    rows = set(re.findall(r"^\| `([a-z_-]+)` \|", PAGE, flags=re.MULTILINE))
    assert rows >= set(IMAGE_RULES) | {level.label for level in Confidence}
