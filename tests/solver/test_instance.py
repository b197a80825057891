"""The instance holds what the file says, reproduces itself, and does not depend on the order of keys."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_models.parallelism import Parallelism
from epd_opt.errors import InvalidInput
from epd_opt.instance import Instance, Quantity, instance_json_schema, instance_sha256
from epd_opt.reading import read

PHOTOS = Path(__file__).parent / "data" / "photos.yaml"
SCHEMA = instance_json_schema()


def document(**changes: Any) -> dict[str, Any]:
    """A small valid document with other top-level keys."""
    chat = {
        "name": "chat",
        "rate_per_s": 12,
        "text_tokens": 800,
        "output_tokens": 300,
        "slo": {"ttft_ms": 800, "itl_ms": 60},
    }
    return {
        "schema": "epd-opt/instance/v1",
        "model": "Qwen3.5-122B-A10B",
        "workload": {"classes": [chat]},
        "devices": [{"sku": "L4", "price": {"usd_per_hour": 0.7}}],
        **changes,
    }


def with_class(**changes: Any) -> dict[str, Any]:
    """The small document with another class."""
    base = document()
    base["workload"]["classes"][0].update(changes)
    return base


def shuffled(value: Any, order: random.Random) -> Any:
    """The same value with the keys of every mapping in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


def test_defaults_are_those_of_the_format() -> None:
    """What a document leaves out has the documented default, and unknowns stay unknown."""
    instance = Instance(**document())
    (chat,) = instance.workload.classes
    assert (chat.slo.percentile, chat.slo.ttft_percentile, chat.interarrival_scv) == (95.0, None, 1.0)
    assert (chat.mean_rate_per_s, chat.cached_tokens, chat.has_vision) == (None, 0.0, False)
    (device,) = instance.devices
    assert (device.name, device.stock, device.owned) == ("L4", None, 0)
    assert device.stages == ("encode", "prefill", "decode")
    assert device.parallelisms() is None
    assert instance.engine.name == "generic"
    assert instance.cost.pue is None
    assert len(instance.placements) == 7
    assert (instance.solver.name, instance.solver.gap) == ("highs", 0.001)


def test_both_spellings_of_parallelism_mean_the_same() -> None:
    """tensor_parallel is short for a list of parallelisms."""
    short = Instance(**document(devices=[{"sku": "L4", "tensor_parallel": [4, 2]}]))
    long = Instance(**document(devices=[{"sku": "L4", "parallelism": [{"tensor": 2}, {"tensor": 4}]}]))
    expected = (Parallelism(tensor=2), Parallelism(tensor=4))
    assert short.devices[0].parallelisms() == long.devices[0].parallelisms() == expected


@pytest.mark.parametrize(
    ("quantity", "mean"),
    [(800, 800.0), ({"mean": 800, "p95": 2400}, 800.0), ({"values": [[200, 7], [2000, 3]]}, 740.0)],
    ids=["number", "lognormal", "values"],
)
def test_sizes_may_vary(quantity: Any, mean: float) -> None:
    """The three forms of a size have the mean they state."""
    instance = Instance(**with_class(text_tokens=quantity))
    assert instance.workload.classes[0].text_tokens.distribution().mean == pytest.approx(mean)


def test_no_images_is_a_number_of_images() -> None:
    """A count of 0 is allowed and makes the class one of text only."""
    images = {"count": 0, "tokens": 256}
    assert not Instance(**with_class(images=images)).workload.classes[0].has_vision
    assert Instance(**with_class(images={**images, "count": 1})).workload.classes[0].has_vision


def test_a_rate_of_zero_is_a_rate() -> None:
    """A class without traffic is part of an instance."""
    assert Instance(**with_class(rate_per_s=0)).workload.classes[0].rate_per_s == 0


def test_one_output_token_needs_no_interval_target() -> None:
    """Where every request ends with its first token there is no interval to bound."""
    slo = {"ttft_ms": 800}
    assert Instance(**with_class(output_tokens=1, slo=slo)).workload.classes[0].slo.itl_ms is None
    with pytest.raises(InvalidInput, match="itl_ms: missing"):
        Instance(**with_class(output_tokens=2, slo=slo))


def test_measured_workers_need_neither_sizes_nor_targets() -> None:
    """Without modelled candidates, rates are all that is known of classes and workers."""
    worker = {"name": "w", "sku": "X", "devices": 1, "stages": ["decode", "encode", "prefill"]}
    instance = Instance(
        workload={"classes": [{"name": "a", "rate_per_s": 1}, {"name": "b", "rate_per_s": 2}]},
        candidates={"modelled": False},
        workers=[{**worker, "max_rate_per_s": {"a": 3}}, {**worker, "name": "v", "max_rate_per_s": 2}],
    )
    first, second = instance.workers
    assert first.stages == ("encode", "prefill", "decode")
    assert (first.rate_per_s("a"), first.rate_per_s("b"), second.rate_per_s("b")) == (3.0, None, 2.0)
    with pytest.raises(InvalidInput, match="workers: missing"):
        Instance(workload={"classes": [{"name": "a", "rate_per_s": 1}]}, candidates={"modelled": False})


@pytest.mark.parametrize("stages", [["encode"], ["prefill"], ["decode"], ["encode", "prefill"], ["prefill", "decode"]])
def test_workers_may_cover_any_run_of_stages(stages: list[str]) -> None:
    """Every contiguous set of stages is a worker."""
    worker = {"name": "w", "sku": "X", "devices": 1, "stages": stages, "max_rate_per_s": 1}
    assert Instance(**document(workers=[worker])).workers[0].stages == tuple(stages)


def test_targets_typed_in_seconds_are_suspected() -> None:
    """Valid values of an implausible size stay valid and are named with their path and the likely meaning."""
    assert Instance(**document()).suspicions() == []
    instance = Instance(
        **with_class(slo={"ttft_ms": 0.8, "itl_ms": 0.06}), cost={"cost_of_capital": 8}, redundancy={"headroom": 20}
    )
    assert [line.split(":")[0] for line in instance.suspicions()] == [
        "workload.classes.chat.slo.ttft_ms",
        "workload.classes.chat.slo.itl_ms",
        "cost.cost_of_capital",
        "redundancy.headroom",
    ]
    assert "for 0.8 s write 800" in instance.suspicions()[0]


def test_an_instance_reproduces_itself() -> None:
    """The document of an instance reads as the same instance, through JSON text too."""
    instance = read(PHOTOS)
    assert read(instance.document()) == instance
    assert read(json.loads(json.dumps(instance.document(), allow_nan=False))) == instance
    assert pickle.loads(pickle.dumps(instance)) == instance


def test_the_document_writes_numbers_as_people_do() -> None:
    """Whole numbers have no decimals, and absent values no keys."""
    written = Instance(**document()).document()
    assert repr(written["workload"]["classes"][0]["rate_per_s"]) == "12"
    assert "stock" not in written["devices"][0]


@given(seed=st.integers(min_value=0, max_value=2**32))
@settings(max_examples=30, deadline=None)
def test_the_order_of_keys_says_nothing(seed: int) -> None:
    """Shuffling the keys of every mapping changes neither the instance, nor its document's text, nor its hash."""
    instance = read(PHOTOS)
    other = read(shuffled(instance.document(), random.Random(seed)))
    assert other == instance
    assert instance_sha256(other) == instance_sha256(instance)
    assert json.dumps(other.document()) == json.dumps(instance.document())


def test_the_hash_sees_values_and_not_the_order_of_named_things() -> None:
    """Classes, devices and workers may be listed in any order; any other change is another instance."""
    instance = read(PHOTOS)
    written = instance.document()
    written["workload"]["classes"].reverse()
    written["devices"].reverse()
    assert instance_sha256(read(written)) == instance_sha256(instance)
    written["devices"][0]["price"]["purchase_usd"] = 2701
    assert instance_sha256(read(written)) != instance_sha256(instance)


def test_shorthand_and_longhand_hash_alike() -> None:
    """Spelling out a default, or an engine's name as a mapping, is the same instance."""
    short = Instance(**document(engine="vllm"))
    long = Instance(**document(engine={"name": "vllm"}, solver={"gap": 0.001}, name="instance"))
    assert instance_sha256(short) == instance_sha256(long)


def test_parts_cannot_be_changed() -> None:
    """An instance is a value."""
    instance = Instance(**document())
    with pytest.raises(ValueError, match="frozen"):
        instance.workload.classes[0].rate_per_s = 3.0


def test_python_gets_the_same_complaints() -> None:
    """Built in Python, an instance complains with paths where a file would add positions."""
    with pytest.raises(InvalidInput) as caught:
        Instance(**with_class(rate_per_s=-1, burstiness=2))
    assert [(p.path, p.line) for p in caught.value.problems] == [
        ("workload.classes.chat.burstiness", None),
        ("workload.classes.chat.rate_per_s", None),
    ]


def test_parts_may_be_built_in_python() -> None:
    """A part made beforehand is as good as its mapping."""
    built = Instance(**document())
    assert Instance(**document(workload=built.workload, devices=built.devices)) == built
    assert Quantity(3.0).distribution().mean == 3.0


def test_the_schema_is_valid_and_describes_every_field() -> None:
    """The JSON Schema is one of draft 2020-12, and each of its properties says what it means."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "epd-opt/instance/v1"
    for part in [SCHEMA, *SCHEMA["$defs"].values()]:
        for key, field in part.get("properties", {}).items():
            assert field.get("description"), key


@pytest.mark.parametrize(
    "good",
    [
        document(),
        document(engine={"name": "sglang", "speculative": {"draft_tokens": 3, "accepted_tokens": 2}}),
        with_class(text_tokens={"mean": 8, "p95": 9}, images={"count": {"values": [[1, 1]]}, "tokens": 9}),
        document(devices=[{"sku": "X", "card": "card.yaml", "price": None}]),
    ],
    ids=["small", "engine", "sizes", "card"],
)
def test_the_schema_accepts_good_documents(good: dict[str, Any]) -> None:
    """What can be read passes the JSON Schema."""
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(good)) == []


def test_the_schema_accepts_what_instances_write() -> None:
    """The resolved document passes the JSON Schema."""
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(read(PHOTOS).document())) == []


@pytest.mark.parametrize(
    "bad",
    [
        document(limit={}),
        document(engine="vlm"),
        document(schema="epd-opt/instance/v2"),
        {key: value for key, value in document().items() if key != "schema"},
        with_class(rate_per_s=-1),
        with_class(rate_per_s="12"),
        with_class(slo={"percentile": 0.95}),
        with_class(images={"count": 1}),
        document(devices=[{"sku": "L4", "price": {"usd_per_hour": 1, "purchase_usd": 2}}]),
        document(precision={"weights": "fp9"}),
    ],
)
def test_the_schema_refuses_bad_documents(bad: dict[str, Any]) -> None:
    """What reading refuses because of a single field, the JSON Schema refuses too."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SCHEMA, cls=jsonschema.Draft202012Validator)
    with pytest.raises(InvalidInput):
        read(bad)
