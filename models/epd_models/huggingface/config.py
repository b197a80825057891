"""Access to a configuration by any of several names for the same thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epd_models.catalog.errors import CardError

Config = Mapping[str, Any]
TEXT = ("text_config", "llm_config", "language_config")


class Reader:
    """Access to one level of a configuration by any of several names for the same thing."""

    def __init__(self, mapping: Config, name: str, where: str = "config.json") -> None:
        self.mapping = mapping
        self.path = f"{name}: {where}"

    def get(self, *keys: str, default: Any) -> Any:
        """The first of the keys that is present and not null."""
        return next((self.mapping[key] for key in keys if self.mapping.get(key) is not None), default)

    def integer(self, *keys: str, default: Any = None, minimum: int = 1) -> int:
        """A whole number under the first of the keys that is present."""
        value = self.get(*keys, default=default)
        if value is None:
            looked = " or ".join(repr(key) for key in keys)
            raise CardError(self.path, f"{looked} is missing; found {', '.join(self.mapping) or 'nothing'}")
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            raise CardError(self.path, f"{keys[0]!r}: expected a whole number of at least {minimum}, found {value!r}")
        return value


def type_of(text: Reader) -> str:
    """The family that a configuration names, or nothing."""
    return str(text.get("model_type", default=""))


def text_part(config: Config) -> Config:
    """The language model's part of a configuration, with what it leaves to the top level."""
    for key in TEXT:
        if isinstance(config.get(key), Mapping):
            return {**{k: v for k, v in config.items() if not isinstance(v, Mapping)}, **config[key]}
    return config
