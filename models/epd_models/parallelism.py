"""How one replica is cut over logical devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Parallelism:
    """Parallel degrees of one replica, counted in logical devices.

    A replica takes ``tensor * pipeline * attention_data`` logical devices. ``expert`` ranks share the routed experts
    and must divide ``tensor * attention_data``; what is left over cuts each expert by tensor parallelism.
    """

    tensor: int = 1
    pipeline: int = 1
    attention_data: int = 1
    expert: int = 1

    @property
    def logical_devices(self) -> int:
        """Logical devices of one replica."""
        return self.tensor * self.pipeline * self.attention_data

    @property
    def label(self) -> str:
        """Short name as in plan documents.

        >>> Parallelism(tensor=8, attention_data=2, expert=16).label
        'tp8-dp2-ep16'
        """
        parts = [f"tp{self.tensor}"]
        parts += [f"pp{self.pipeline}"] if self.pipeline > 1 else []
        parts += [f"dp{self.attention_data}"] if self.attention_data > 1 else []
        parts += [f"ep{self.expert}"] if self.expert > 1 else []
        return "-".join(parts)
