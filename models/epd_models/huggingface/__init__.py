"""A Hugging Face ``config.json`` -> :class:`Architecture`, so that a model without a card can be planned for.

A configuration is read by the keys that it holds, not by its ``model_type``: a family nobody heard of works as long as
its shapes are named as others name them. Vision towers differ too much for that and are read by type.
"""

from epd_models.huggingface.language import architecture_from_config

__all__ = ["architecture_from_config"]
