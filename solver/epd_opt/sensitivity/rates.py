"""Rates of an instance document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Rates = tuple[float, ...]
"""Requests/s of the classes, in the document's order."""


def rates_of(document: Mapping[str, Any]) -> Rates:
    """Rates of the classes, in their order, requests/s."""
    return tuple(float(request["rate_per_s"]) for request in document["workload"]["classes"])


def with_rates(document: Mapping[str, Any], rates: Rates) -> dict[str, Any]:
    """The document at other rates, mean rates left out."""
    classes = [
        {key: value for key, value in request.items() if key != "mean_rate_per_s"} | {"rate_per_s": rate}
        for request, rate in zip(document["workload"]["classes"], rates, strict=True)
    ]
    return {**document, "workload": {**document["workload"], "classes": classes}}


def unrated(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without its rates."""
    return with_rates(document, (0.0,) * len(document["workload"]["classes"]))
