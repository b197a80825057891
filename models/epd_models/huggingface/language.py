"""The language model of a configuration, and the architecture as a whole."""

from __future__ import annotations

from epd_models.architecture import Architecture
from epd_models.catalog.counting import language_model_parameters
from epd_models.catalog.errors import CardError
from epd_models.huggingface.attention import attention_of
from epd_models.huggingface.config import Config, Reader, text_part, type_of
from epd_models.huggingface.experts import experts_of
from epd_models.huggingface.storage import native_weights
from epd_models.huggingface.towers import vision_of
from epd_models.provenance import Confidence, Provenance

_WIDTHS = ("intermediate_size", "ffn_hidden_size", "n_inner")
_UNREADABLE = {
    "hybrid_override_pattern": "layers of a Mamba hybrid",
    "mamba_num_heads": "layers of a Mamba hybrid",
    "hybrid_layer_pattern": "attention groups with different heads",
    "block_configs": "layers of different shapes",
    "compress_ratios": "compressed attention",
    "linear_attn_config": "linear attention of the Kimi kind",
    "num_global_key_value_heads": "attention groups with different heads",
}


def architecture_from_config(config: Config, name: str) -> Architecture:
    """An architecture from the content of a ``config.json``.

    Parameters are counted from the shapes. A quantisation that stands in a file of its own (``hf_quant_config.json``)
    is not seen: copy it under ``quantization_config``. Recurrent state of linear attention counts two bytes per
    element, as in the catalogue. Where ``tie_word_embeddings`` is absent, embeddings are tied for Gemma and untied
    otherwise. Token limits that stand in ``preprocessor_config.json`` are those of the published checkpoints.

    Parameters
    ----------
    config : mapping
        The parsed JSON document; shapes may stand at the top or under ``text_config`` (``llm_config``).
    name : str
        The model's name, for messages and plans.

    Raises
    ------
    CardError
        A shape is missing (the message names the keys that were looked for), makes no sense, or the vision tower or
        the quantisation is of a kind not known here.

    Examples
    --------
    >>> llama = architecture_from_config({
    ...     "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    ...     "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 131072}, "my-llama")
    >>> round(llama.parameters / 1e9, 2)
    8.03
    """
    text = Reader(text_part(config), name)
    unreadable = next((key for key in _UNREADABLE if text.get(key, default=None)), None)
    if unreadable is not None:
        raise CardError(text.path, f"{unreadable!r}: {_UNREADABLE[unreadable]} cannot be read; give a card instead")
    hidden = text.integer("hidden_size", "n_embd", "d_model")
    layers = text.integer("num_hidden_layers", "n_layer", "num_layers")
    vocab = text.integer("vocab_size", default=config.get("vocab_size"))
    attention = attention_of(text, layers, hidden)
    experts = experts_of(text, layers)
    dense_layers = layers - (experts.layers if experts else 0)
    dense_intermediate = 0
    if dense_layers:
        dense_intermediate = text.integer("intermediate_size_mlp", "dense_intermediate_size", *_WIDTHS)
    tied = text.get("tie_word_embeddings", default=config.get("tie_word_embeddings", "gemma" in type_of(text)))
    total, active = language_model_parameters(
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=bool(tied),
        attention=attention,
        dense_layers=dense_layers,
        dense_intermediate=dense_intermediate,
        experts=experts,
        output_gate=bool(text.get("attn_output_gate", default=type_of(text).startswith(("qwen3_5", "qwen3_next")))),
    )
    return Architecture(
        name=name,
        parameters=total,
        active_parameters=active,
        layers=layers,
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=bool(tied),
        dense_intermediate=dense_intermediate,
        dense_layers=dense_layers,
        attention=attention,
        experts=experts,
        vision=vision_of(config, hidden, name),
        native_weights=native_weights(config, name),
        context_length=text.get("max_position_embeddings", "seq_length", "n_positions", default=None),
        provenance=Provenance(source=f"config.json of {name}", confidence=Confidence.USER),
    )
