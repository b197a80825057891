"""What may be changed in an instance against each kind of limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from epd_models.catalog import device_from_card
from epd_models.entry import Entry
from epd_models.parallelism import IllegalParallelism, Parallelism, check_legal, tensor_degrees
from epd_models.placement import PLACEMENTS
from epd_models.precision import BYTES_PER_VALUE
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.document import Reason
from epd_opt.mending.ladder import on_rung, rung_above
from epd_opt.mending.trial import Change
from epd_opt.offering import Offering
from epd_opt.resolve import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A number to move until it is enough.

    Attributes
    ----------
    change : callable
        The change for a value of the number.
    up : bool
        Whether larger values ask for less.
    whole : bool
        Whether it must be a whole number.
    guess, loosest, within
        See :func:`epd_opt.mending.ladder.nearest`.
    """

    now: float
    change: Callable[[float], Change]
    up: bool
    whole: bool = False
    guess: float | None = None
    loosest: float | None = None
    within: float = 1.0

    def rounded(self, value: float) -> float:
        """The value, whole where it must be, on the safe side."""
        if not self.whole:
            return value
        return float(math.ceil(value)) if self.up else float(max(1, math.floor(value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A few values to try in order; the first one that works is taken."""

    changes: tuple[Change, ...]


Knob = Level | Choice


def knobs(reason: Reason, resolved: Resolved, offered: Offering) -> Iterator[Knob]:
    """What may be changed against one reason, the likeliest first."""
    name = reason.request_class
    stated = next((c for c in resolved.instance.workload.classes if c.name == name), None)
    if reason.limit in _TARGETS and stated is not None:
        yield from _target(stated, reason.limit, reason.best_reachable)
    if reason.limit == "precision":
        yield from _supported_formats(resolved)
    if reason.limit == "context_length" and stated is not None:
        yield from _sizes(stated, excess=(reason.wanted or 0.0) - (reason.best_reachable or 0.0))
        return
    if reason.limit in ("memory", "parallelism", "ttft_ms", "itl_ms", "e2e_ms"):
        yield from _cuts(resolved)
    if reason.limit in ("memory", "itl_ms", "ttft_ms", "e2e_ms"):
        yield from _narrower(resolved, "weights")
    if reason.limit == "memory":
        yield from _narrower(resolved, "kv_cache")
        yield from _memory_fraction(resolved)
        if stated is not None and reason.wanted and any(_of_class(r, name) for r in offered.rejections):
            yield from _sizes(stated)
    yield from _wishes(resolved.instance)
    yield from _stronger_racks(resolved)
    yield from prices(resolved, offered)
    if name is not None:
        yield from _stages(resolved.instance)
        yield from _placements(resolved.instance)
        yield from _kv_pairs(resolved.instance)
    else:
        yield from _demand(resolved.instance)


def leaving_out(name: str) -> Change:
    """Planning nothing for a class."""
    path = format_path(["workload", "classes", name, "rate_per_s"])
    return Change(path=path, to=0, text=f"class {name!r} left out")


def not_required() -> Change:
    """Requiring no devices."""
    return Change(path="limits.require", to=[], text="no devices required")


def _of_class(rejection: Any, name: str | None) -> bool:
    return bool(rejection.limit == "memory" and rejection.request_class == name)


_TARGETS = {"ttft_ms": "TTFT", "itl_ms": "ITL", "e2e_ms": "end-to-end time"}


def target(instance: user.Instance, path: str, value: float) -> Change | None:
    """Another value for the target of a class at a path; None where the path is of no target."""
    for stated in instance.workload.classes:
        for key in _TARGETS:
            if path == format_path(["workload", "classes", stated.name, "slo", key]):
                return next((level.change(value) for level in _target(stated, key, None)), None)
    return None


def _target(
    stated: user.RequestClass, key: str, reachable: float | None, *, loosest: float | None = None
) -> Iterator[Level]:
    now = getattr(stated.slo, key)
    if now is None:
        return
    path = format_path(["workload", "classes", stated.name, "slo", key])

    def change(value: float) -> Change:
        text = f"a target of {value:,g} ms for the {_TARGETS[key]} of {stated.name!r} (now {now:,g})"
        return Change(path=path, to=_plain(value), text=text)

    guess = reachable if reachable is not None and reachable > now else None
    yield Level(now=now, change=change, up=True, guess=guess, loosest=loosest, within=_NEAR if loosest else 1.0)


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


_NEAR = 1.1
"""Where every trial is a search over fleets, a tenth more than the least is near enough."""


def _demand(instance: user.Instance) -> Iterator[Level]:
    """Less of each class, and looser targets, where the limits of the fleet are in the way."""
    for stated in instance.workload.classes:
        yield from _less_of(stated)
        for key in _TARGETS:
            now = getattr(stated.slo, key)
            yield from _target(stated, key, None, loosest=None if now is None else now * 10.0)


def _less_of(stated: user.RequestClass) -> Iterator[Level]:
    if stated.rate_per_s <= 0:
        return
    path = format_path(["workload", "classes", stated.name, "rate_per_s"])

    def change(value: float) -> Change:
        text = f"{value:,g} requests/s of {stated.name!r} (now {stated.rate_per_s:,g})"
        return Change(path=path, to=_plain(value), text=text)

    yield Level(now=stated.rate_per_s, change=change, up=False, loosest=stated.rate_per_s / 10.0, within=_NEAR)


def _sizes(stated: user.RequestClass, *, excess: float = 0.0) -> Iterator[Level]:
    """Shorter requests: fewer tokens, images or frames; ``excess`` tokens are too many."""
    for key, words in (("text_tokens", "text tokens"), ("output_tokens", "output tokens")):
        quantity = getattr(stated, key)
        if quantity is not None and quantity.distribution().mean >= 2.0:
            yield _tokens(stated.name, key, words, quantity, excess)
    counts = {}
    if stated.images is not None and isinstance(stated.images.count.root, float | int):
        counts["images", "count"] = (float(stated.images.count.root), "images per request")
    if stated.video is not None:
        sampled = stated.video.seconds * stated.video.fps
        frames = sampled if stated.video.max_frames is None else min(sampled, stated.video.max_frames)
        counts["video", "max_frames"] = (frames, "frames per clip")
    for keys, (now, words) in counts.items():
        if now >= 2.0:
            yield _fewer(stated.name, keys, now, words)


def _fewer(name: str, keys: tuple[str, str], now: float, words: str) -> Level:
    path = format_path(["workload", "classes", name, *keys])

    def change(value: float) -> Change:
        return Change(path=path, to=int(value), text=f"at most {value:g} {words} of {name!r} (now {now:g})")

    return Level(now=now, change=change, up=False, whole=True, loosest=1.0)


def _tokens(name: str, key: str, words: str, quantity: user.Quantity, excess: float) -> Level:
    now, form = quantity.distribution().mean, quantity.root
    path = format_path(["workload", "classes", name, key])

    def change(value: float) -> Change:
        part = value / now
        to: Any = int(value)
        if isinstance(form, user.Lognormal):
            to = {"mean": int(value), "p95": float(f"{form.p95 * part:.4g}")}
        elif isinstance(form, user.Values):
            to = {"values": [[float(f"{size * part:.4g}"), weight] for size, weight in form.values]}
        return Change(path=path, to=to, text=f"{value:,g} {words} in requests of {name!r} (now {now:,g} on average)")

    guess = now - excess if excess > 0 and isinstance(form, float | int) else None
    return Level(now=now, change=change, up=False, whole=True, guess=guess if guess and guess >= 1 else None, loosest=1.0)


def _cuts(resolved: Resolved) -> Iterator[Choice]:
    """Further tensor degrees where an entry names those to consider."""
    stated = {entry.name: entry for entry in resolved.instance.devices}
    for entry in resolved.entries:
        changes = tuple(_cut(resolved, stated[entry.name], entry, degree) for degree in _degrees(resolved, entry))
        if changes and stated[entry.name].parallelisms() is not None:
            yield Choice(changes=changes)


_MOST_DEGREE = 64


def _degrees(resolved: Resolved, entry: Entry) -> list[int]:
    """Legal tensor degrees that an entry leaves out, powers of two first."""
    assert resolved.model is not None
    found = []
    for degree in tensor_degrees(resolved.model):
        cut = Parallelism(tensor=degree)
        if degree > _MOST_DEGREE or cut in entry.cuts:
            continue
        if _legal(cut, resolved, entry):
            found.append(degree)
    return sorted(found, key=lambda degree: (not math.log2(degree).is_integer(), degree))


def _legal(cut: Parallelism, resolved: Resolved, entry: Entry) -> bool:
    assert resolved.model is not None
    try:
        check_legal(cut, resolved.model, entry.device)
    except IllegalParallelism:
        return False
    return True


def _cut(resolved: Resolved, stated: user.DeviceEntry, entry: Entry, degree: int) -> Change:
    """A further degree beside the legal ones that are stated."""
    text = f"tensor degree {degree} on {entry.name}"
    if stated.parallelism is not None:
        legal = [cut for cut in stated.parallelism if _legal(cut.parallelism(), resolved, entry)]
        kept: list[Any] = [cut.model_dump(mode="json") for cut in legal]
        path = format_path(["devices", entry.name, "parallelism"])
        return Change(path=path, to=[*kept, {"tensor": degree}], text=text)
    path = format_path(["devices", entry.name, "tensor_parallel"])
    degrees = [d for d in stated.tensor_parallel or () if _legal(Parallelism(tensor=d), resolved, entry)]
    return Change(path=path, to=sorted([*degrees, degree]), text=text)


_WHAT = {"weights": "weights", "kv_cache": "a KV cache", "encoder": "encoder weights"}


def _format_choice(resolved: Resolved, key: str, fits: Callable[[Entry], list[str]]) -> Iterator[Choice]:
    """Other storage formats, for the whole instance and for entries that have their own."""
    stated = {entry.name: entry for entry in resolved.instance.devices}
    own = [e for e in resolved.entries if (p := stated[e.name].precision) is not None and getattr(p, key) is not None]
    shared = [entry for entry in resolved.entries if entry not in own]
    places = [(["precision", key], shared, "")] if shared else []
    places += [(["devices", entry.name, "precision", key], [entry], f" on {entry.name}") for entry in own]
    for path, entries, where in places:
        formats = list(dict.fromkeys(name for entry in entries for name in fits(entry)))
        if formats:
            yield Choice(
                changes=tuple(
                    Change(path=format_path(path), to=name, text=f"{_WHAT[key]} stored as {name}{where}") for name in formats
                )
            )


def _narrower(resolved: Resolved, key: str) -> Iterator[Choice]:
    """Formats of fewer bytes that devices store, the widest first."""

    def fits(entry: Entry) -> list[str]:
        stored = entry.device.weight_formats if key == "weights" else entry.device.kv_formats
        now = BYTES_PER_VALUE[getattr(entry.precision, key)]
        return sorted((f for f in stored if BYTES_PER_VALUE[f] < now), key=lambda f: (-BYTES_PER_VALUE[f], f))

    yield from _format_choice(resolved, key, fits)


def _supported_formats(resolved: Resolved) -> Iterator[Choice]:
    """Formats that devices store in place of those that they do not, the nearest in size first."""
    for key in ("weights", "kv_cache", "encoder"):

        def fits(entry: Entry, key: str = key) -> list[str]:
            stored = entry.device.kv_formats if key == "kv_cache" else entry.device.weight_formats
            asked = getattr(entry.precision, key)
            size = BYTES_PER_VALUE[asked]
            near = sorted(stored, key=lambda f: (abs(math.log(BYTES_PER_VALUE[f] / size)), f))
            return [] if asked in stored else near

        yield from _format_choice(resolved, key, fits)


_MOST_FRACTION = 0.95


def _memory_fraction(resolved: Resolved) -> Iterator[Choice]:
    if resolved.engine.memory_fraction < _MOST_FRACTION:
        text = f"{_MOST_FRACTION:.0%} of the memory given to the engine (now {resolved.engine.memory_fraction:.0%})"
        yield Choice(changes=(Change(path="engine.memory_fraction", to=_MOST_FRACTION, text=text),))


def prices(resolved: Resolved, offered: Offering) -> Iterator[Choice]:
    """A price for every entry that has none: the catalogue's where it has one."""
    unpriced = {r.device for r in offered.rejections if r.limit == "no_price"}
    unpriced |= {offer.name for offer in resolved.offers if not offer.for_sale}
    stated = {entry.name for entry in resolved.instance.devices if entry.price is not None}
    for name in sorted(unpriced):
        card = resolved.cards["devices"].get(name)
        price = None if card is None else device_from_card(card, source=name).price
        key, to, text = "usd_per_hour", 1.0, f"any price for {name} (1 $/h stands for yours)"
        if price is not None and price.usd_per_hour is not None:
            to, text = price.usd_per_hour, f"a price for {name} (the catalogue's rent is {price.usd_per_hour:g} $/h)"
        elif price is not None and price.purchase_usd is not None:
            key, to = "purchase_usd", price.purchase_usd
            text = f"a price for {name} (the catalogue's purchase price is {price.purchase_usd:,g} $)"
        place = ["devices", name, "price"]
        change = Change(path=format_path([*place, key]), to=_plain(to), text=text)
        if name in stated:
            change = Change(path=format_path(place), to={key: _plain(to)}, text=text)
        yield Choice(changes=(change,))


def _wishes(instance: user.Instance) -> Iterator[Choice]:
    """Devices allowed, or not asked for, and orders of any size."""
    limits = instance.limits
    if limits.require:
        yield Choice(changes=(not_required(),))
    if limits.forbid:
        yield Choice(changes=(Change(path="limits.forbid", to=[], text="no devices forbidden"),))
    for entry in instance.devices:
        if entry.price is not None and entry.price.minimum > 1:
            path = format_path(["devices", entry.name, "price", "minimum"])
            text = f"orders of {entry.name} of any size (now at least {entry.price.minimum})"
            yield Choice(changes=(Change(path=path, to=0, text=text),))


def _stronger_racks(resolved: Resolved) -> Iterator[Choice]:
    """Racks that power what is left out because it draws too much for one, the least first."""
    asked = sorted({r.best_reachable for r in resolved.rejections if r.limit == "rack_kw" and r.best_reachable is not None})
    now = resolved.instance.limits.rack_kw
    enough = [on_rung(rung_above(power)) for power in asked]
    if enough:
        yield Choice(
            changes=tuple(
                Change(path="limits.rack_kw", to=_plain(to), text=f"racks of {to:g} kW (now {now:g})") for to in enough
            )
        )


def _stages(instance: user.Instance) -> Iterator[Choice]:
    for entry in instance.devices:
        if set(entry.stages) != set(user.STAGES):
            path = format_path(["devices", entry.name, "stages"])
            yield Choice(changes=(Change(path=path, to=list(user.STAGES), text=f"all stages allowed on {entry.name}"),))


def _placements(instance: user.Instance) -> Iterator[Choice]:
    if set(instance.placements) != set(PLACEMENTS):
        yield Choice(changes=(Change(path="placements", to=list(PLACEMENTS), text="all placements allowed"),))


def all_ways(instance: user.Instance) -> tuple[Change, ...]:
    """All stages, placements and hand-overs allowed at once."""
    choices = (*_stages(instance), *_placements(instance), *_kv_pairs(instance))
    return tuple(change for choice in choices for change in choice.changes)


def _kv_pairs(instance: user.Instance) -> Iterator[Choice]:
    if instance.network.forbidden_kv_pairs:
        text = "KV caches allowed to move between all devices"
        yield Choice(changes=(Change(path="network.forbidden_kv_pairs", to=[], text=text),))
