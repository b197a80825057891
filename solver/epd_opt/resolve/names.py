"""What limits may call a device entry, and what must be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from epd_models.device import Device
from epd_opt import instance as user
from epd_opt.address import format_path
from epd_opt.errors import InvalidInput, Problem
from epd_opt.problem import Offer

_KINDS = ("gpu", "npu", "tpu", "asic")


def names_of(entry: user.DeviceEntry, device: Device | None) -> frozenset[str]:
    """What limits may call a device entry, in small letters: name, SKU, vendor and kind."""
    own = [entry.name, entry.sku, *([] if device is None else [device.vendor, device.kind])]
    return frozenset(name.casefold() for name in own)


def without_device(instance: user.Instance) -> Iterator[Problem]:
    """Complaints about measured workers whose device the instance does not have."""
    known = sorted({entry.name for entry in instance.devices} | {entry.sku for entry in instance.devices})
    for worker in instance.workers:
        if worker.sku not in known:
            near = get_close_matches(worker.sku, known, n=3, cutoff=0.5)
            yield Problem(
                path=format_path(["workers", worker.name, "sku"]),
                message=f"no device of this instance is called {worker.sku!r}",
                hint=f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known) or 'none'}",
            )


def required(
    instance: user.Instance, named: Mapping[str, frozenset[str]], offers: list[Offer]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What must be used, with the entries on offer that are meant.

    Raises
    ------
    InvalidInput
        A name in `limits.forbid` or `limits.require` fits no device entry, or nothing that is required is on offer.
    """
    known = sorted({name for names in named.values() for name in names})
    problems = []
    for key in ("forbid", "require"):
        for index, wanted in enumerate(getattr(instance.limits, key)):
            path = format_path(["limits", key, index])
            fits = [name for name, names in named.items() if wanted.casefold() in names]
            if not fits and not (key == "forbid" and wanted.casefold() in _KINDS):
                near = get_close_matches(wanted.casefold(), known, n=3, cutoff=0.5)
                hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
                message = f"{wanted!r} is no name, SKU, vendor or kind of any device entry"
                problems.append(Problem(path=path, message=message, hint=hint))
            elif key == "require" and not any(offer.name in fits for offer in offers):
                message = (
                    f"{wanted!r} is required, but {' and '.join(fits)} {'is' if len(fits) == 1 else 'are'} not on offer"
                )
                hint = "give a price, or look at limits.forbid and limits.rack_kw"
                problems.append(Problem(path=path, message=message, hint=hint))
    if problems:
        raise InvalidInput(problems)
    on_offer = {offer.name for offer in offers}
    return tuple(
        (wanted, tuple(sorted(name for name, names in named.items() if wanted.casefold() in names and name in on_offer)))
        for wanted in sorted(instance.limits.require)
    )
