"""A model's card -> :class:`Architecture`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_models.architecture import Architecture, AttentionGroup, Experts, VisionTower
from epd_models.catalog.device_card import WEIGHT_FORMATS, label
from epd_models.catalog.fields import Fields
from epd_models.provenance import Confidence, Provenance
from epd_models.vision import IMAGE_RULES

_BILLION = 1e9
_KINDS = ("full", "sliding", "linear", "mla", "cross")


def architecture_from_card(card: Mapping[str, Any], *, source: str = "inline card") -> Architecture:
    """A model from the content of a card.

    Parameters
    ----------
    card : mapping
        As in docs/catalog.md. Parameters count the language model in billions; the vision tower has its own.
    source : str
        Where the card comes from; named in messages and kept as provenance where the card states no source.

    Raises
    ------
    CardError
        A key is unknown or missing, a value of the wrong type or out of range, or layers do not add up.
    """
    fields = Fields(card, label(card, "name", source))
    name = fields.text("name")
    fields.text("type", None, among=("llm", "vlm"))
    published = fields.child("published", {})
    for key in ("parameters_billions", "active_parameters_billions"):
        published.number(key, None, above=0.0)
    published.close()

    model = fields.child("language_model")
    layers = model.integer("layers", minimum=1)
    total = model.number("parameters_billions", above=0.0)
    active = model.number("active_parameters_billions", total, above=0.0)
    if active > total:
        raise model.error("active_parameters_billions", f"{active:g} active of {total:g} in total")
    dense_layers = model.integer("dense_layers", minimum=0)
    dense_intermediate = model.integer("dense_intermediate", 0)
    hidden = model.integer("hidden", minimum=1)
    vocab = model.integer("vocab", minimum=1)
    tied_embeddings = model.flag("tied_embeddings")
    gated_mlp = model.flag("gated_mlp", True)
    native_weights = model.text("native_weights", "bf16", among=WEIGHT_FORMATS)
    context_length = model.integer("context_length", None, minimum=1)
    model.text("context_length_basis", None)
    model.close()

    attention = tuple(_attention(group) for group in fields.children("attention"))
    if sum(group.layers for group in attention) != layers:
        counted = " + ".join(str(group.layers) for group in attention) or "0"
        raise fields.error("attention", f"layers of the groups add up to {counted}, the model has {layers}")
    experts = _experts(fields.child("experts")) if "experts" in fields else None
    feed_forward = dense_layers + (experts.layers if experts else 0)
    if feed_forward != layers:
        raise fields.error(
            "language_model.dense_layers",
            f"{dense_layers} dense and {feed_forward - dense_layers} expert layers, the model has {layers}",
        )
    architecture = Architecture(
        name=name,
        aliases=fields.texts("aliases", ()),
        parameters=total * _BILLION,
        active_parameters=active * _BILLION,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=tied_embeddings,
        dense_intermediate=dense_intermediate,
        dense_layers=dense_layers,
        gated_mlp=gated_mlp,
        attention=attention,
        experts=experts,
        vision=_vision(fields.child("vision")) if "vision" in fields else None,
        native_weights=native_weights,
        context_length=context_length,
        provenance=_provenance(fields, source),
    )
    fields.close()
    return architecture


def _provenance(fields: Fields, source: str) -> Provenance:
    note = fields.text("notes", None)
    stated = fields.provenance(source, Confidence.USER)
    return Provenance(source=stated.source, confidence=stated.confidence, date=stated.date, note=stated.note or note)


def _attention(fields: Fields) -> AttentionGroup:
    kind = fields.text("kind", among=_KINDS)
    layers = fields.integer("layers", minimum=1)
    shape: dict[str, Any] = {}
    if kind == "linear":
        for key in ("linear_key_heads", "linear_value_heads", "linear_head_dim"):
            shape[key] = fields.integer(key, minimum=1)
        shape["state_bytes"] = fields.number("state_bytes", above=0.0)
    else:
        shape["heads"] = fields.integer("heads", minimum=1)
        shape["kv_heads"] = fields.integer("kv_heads", minimum=1)
        shape["head_dim"] = fields.integer("head_dim", minimum=1)
        if shape["heads"] % shape["kv_heads"]:
            raise fields.error("kv_heads", f"{shape['heads']} query heads cannot share {shape['kv_heads']} key heads")
    if kind == "sliding":
        shape["window"] = fields.integer("window", minimum=1)
    if kind == "mla":
        shape["latent_dim"] = fields.integer("latent_dim", minimum=1)
        shape["query_latent_dim"] = fields.integer("query_latent_dim", 0)
    if kind == "cross":
        shape["positions"] = fields.integer("positions", minimum=1)
    fields.close()
    return AttentionGroup(kind=kind, layers=layers, **shape)


def _experts(fields: Fields) -> Experts:
    experts = Experts(
        layers=fields.integer("layers", minimum=1),
        routed=fields.integer("routed", minimum=1),
        active=fields.integer("active", minimum=1),
        dim=fields.integer("dim", minimum=1),
        shared=fields.integer("shared", 0),
        shared_dim=fields.integer("shared_dim", 0),
    )
    if experts.active > experts.routed:
        raise fields.error("active", f"{experts.active} active of {experts.routed} routed experts")
    fields.close()
    return experts


def _vision(fields: Fields) -> VisionTower:
    layers = fields.integer("layers", minimum=1)
    tower = VisionTower(
        name=fields.text("name"),
        parameters=fields.number("parameters_billions", above=0.0) * _BILLION,
        layers=layers,
        hidden=fields.integer("hidden", minimum=1),
        heads=fields.integer("heads", minimum=1),
        mlp=fields.integer("mlp", minimum=1),
        gated=fields.flag("gated", False),
        patch_px=fields.integer("patch_px", minimum=1),
        merge=fields.integer("merge", 1, minimum=1),
        full_attention_layers=fields.integer("full_attention_layers", layers),
        window_px=fields.integer("window_px", None, minimum=1),
        rule=fields.text("rule", among=tuple(IMAGE_RULES)),
        rule_parameters=fields.numbers("rule_parameters"),
        video_rule_parameters=fields.numbers("video_rule_parameters"),
    )
    if tower.full_attention_layers > layers:
        raise fields.error("full_attention_layers", f"{tower.full_attention_layers} of {layers} layers")
    if tower.full_attention_layers < layers and tower.window_px is None:
        raise fields.error("window_px", "layers that do not attend over the whole image need a window")
    needed = IMAGE_RULES[tower.rule].parameters
    missing = [key for key in needed if key not in tower.rule_parameters]
    if missing:
        raise fields.error("rule_parameters", f"the rule {tower.rule} needs {', '.join(missing)}")
    for key in ("attention_note", "token_note", "video_note", "projector"):
        fields.text(key, None)
    fields.provenance("", Confidence.ESTIMATE)
    fields.close()
    return tower
