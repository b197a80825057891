"""What all placements share: the model, the engine, the classes and the network."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

from epd_models.architecture import Architecture
from epd_models.candidate import Rejection
from epd_models.engine import Engine
from epd_models.request import RequestLoad
from epd_models.transfer import Network

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a pool is built for.

    Attributes
    ----------
    loads : tuple of RequestLoad
        Classes, sorted by name.
    slowest_bandwidth : float
        Bytes/s of the slowest unit that any pool may hand over to or from.
    """

    model: Architecture
    engine: Engine
    loads: tuple[RequestLoad, ...]
    network: Network
    slowest_bandwidth: float
    _made: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` returns, made once for a key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]


class NotBuildable(Exception):
    """A pool that cannot exist, with the reason."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.text)
        self.rejection = rejection
