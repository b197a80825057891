"""What all placements share: the model, the engine, the classes and the network."""

from __future__ import annotations

from dataclasses import dataclass

from epd_models.architecture import Architecture
from epd_models.candidate import Rejection
from epd_models.engine import Engine
from epd_models.request import RequestLoad
from epd_models.transfer import Network


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


class NotBuildable(Exception):
    """A pool that cannot exist, with the reason."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.text)
        self.rejection = rejection
