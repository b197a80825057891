"""Numbers that options take."""

from __future__ import annotations

import math

import click


class Finite(click.FloatRange):
    """A range of numbers that neither nan nor inf is in."""

    def convert(self, value: float, param: click.Parameter | None, context: click.Context | None) -> float:
        """The number, or a usage error."""
        number: float = super().convert(value, param, context)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, context)
        return number
