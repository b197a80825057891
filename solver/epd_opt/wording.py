"""Words and figures that every way of showing a plan shares."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from epd_opt.document import Pool

_REQUIREMENTS = {
    "time": "decode loop at its token interval",
    "kv_memory": "memory for KV caches",
    "sequences": "limit of sequences in flight",
    "share": "prefill and encode in the decode loop",
    "interval": "prefill and encode between two tokens",
    "compute": "compute of the device",
    "host": "host cores for image processing",
    "link": "network interface",
    "fan_out": "encoders for the images of one request",
    "rate": "measured rate of the worker",
    "minimum": "smallest pool for its token interval",
}
_QUEUED = {
    "work": "{queue} work, safety staffing included",
    "burst": "bursts of {queue} work",
    "peak": "longest {queue} jobs, others behind them",
    "minimum": "smallest pool for its {queue} wait",
}


def requirement(kind: str) -> str:
    """What a requirement of a pool asks room for, in words; kinds without words come back as they are.

    >>> requirement("kv_memory"), requirement("prefill_burst")
    ('memory for KV caches', 'bursts of prefill work')
    """
    if kind in _REQUIREMENTS:
        return _REQUIREMENTS[kind]
    queue, _, rule = kind.partition("_")
    return _QUEUED[rule].format(queue=queue) if rule in _QUEUED else kind


def fullest(pool: Pool) -> list[tuple[str, float]]:
    """Requirements of a pool and their utilisation: those that bind first, then the fullest, smallest pools after what
    loads them."""

    def order(item: tuple[str, float]) -> tuple[bool, float, bool, str]:
        kind, value = item
        return kind not in pool.binding, -round(value, 2), kind.endswith("minimum"), kind

    return sorted(pool.utilisation.items(), key=order)


_TRUST = ("estimate", "recalled", "third-party", "datasheet", "measured", "user")
_SOURCES = {"analytic": "the performance models", "silicon": "kernel tables", "profile": "measurements"}


def sources(pools: Sequence[Pool]) -> str:
    """What the times of modelled pools come from, in words."""
    used = {time.source for pool in pools for time in pool.times} or {pool.provenance for pool in pools}
    return " and ".join(words for name, words in _SOURCES.items() if name in used)


def weakest(pools: Sequence[Pool]) -> str:
    """The weakest of the times of modelled pools: its confidence, whose it is, and how far it was off on measurements.

    Among equally trusted times the one with the largest error counts, and one that was never compared before all.
    """
    letters = labels(pools)
    modelled = [pool for pool in pools if pool.provenance != "measured"]
    found = [(time, letters[pool.name]) for pool in modelled for time in pool.times]
    if not found:
        return min((pool.confidence for pool in modelled), key=_trust)
    least = min((time.confidence for time, _ in found), key=_trust)
    time, letter = max(
        ((time, letter) for time, letter in found if time.confidence == least),
        key=lambda item: math.inf if item[0].fitted_error is None else item[0].fitted_error.median,
    )
    error = time.fitted_error
    off = "never compared"
    if error is not None:
        measured = "measurements" if error.points > 1 else "measurement"
        off = f"off by {error.median:.0%} in the median of {error.points} {measured}"
    return f"{least} ({time.stage} of {letter}, {off})"


def _trust(confidence: str) -> int:
    return _TRUST.index(confidence) if confidence in _TRUST else -1


def label(index: int) -> str:
    """Letters for the pools of a plan.

    >>> label(0), label(25), label(26)
    ('A', 'Z', 'AA')
    """
    letters = string.ascii_uppercase
    return letters[index] if index < 26 else label(index // 26 - 1) + letters[index % 26]


def labels(pools: Sequence[Pool]) -> dict[str, str]:
    """The letters of pools by pool name."""
    return {pool.name: label(index) for index, pool in enumerate(pools)}


def printable(text: str) -> str:
    r"""Text on one line: what a terminal would not print becomes its escape.

    >>> printable("two\nlines")
    'two\\nlines'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(amount: float, thing: str, things: str | None = None) -> str:
    """A number and what it counts.

    >>> counted(1, "pool"), counted(2, "pool"), counted(0.5, "device")
    ('1 pool', '2 pools', '0.5 devices')
    """
    return f"{amount:g} {thing if amount == 1 else things or thing + 's'}"


def money(usd: float | None) -> str:
    """US dollars with as many digits as say something.

    >>> money(41.2), money(6628.4), money(0.00075), money(6.7e-5), money(None)
    ('$41.20', '$6,628', '$0.00075', '$0.000067', '-')
    """
    if usd is None:
        return "-"
    if abs(usd) >= 1000:
        return f"${usd:,.0f}"
    if usd == 0 or abs(usd) >= 0.1:
        return f"${usd:,.2f}"
    return "$" + significant(usd)


def significant(value: float) -> str:
    """Three digits, never in scientific notation where it can be avoided.

    >>> significant(0.0000671), significant(19.98), significant(0.25), significant(12345.6), significant(3e-9)
    ('0.0000671', '20', '0.25', '12,346', '3e-09')
    """
    if value == 0 or not 1e-6 <= abs(value) < 1e12:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{float(f'{value:.3g}'):.12f}"
    return text.rstrip("0").rstrip(".")


def milliseconds(value: float | None) -> str:
    """Milliseconds, three digits; a dash where nothing is known.

    >>> milliseconds(1018.4), milliseconds(18.83), milliseconds(None)
    ('1,018', '18.8', '-')
    """
    return "-" if value is None else significant(value)


def share(value: float) -> str:
    """A share in per cent.

    >>> share(0.994), share(0.0012), share(0.0)
    ('99%', '<1%', '0%')
    """
    return "<1%" if 0 < value < 0.01 else f"{value:.0%}"


PROVED_OPTIMAL = 5e-5
"""A gap so small is not worth its figures."""
