"""Validation errors of pydantic as one helpful problem per place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from epd_opt.address import address, format_path
from epd_opt.errors import Problem
from epd_opt.fields import TAG, Complaint, Location, shown
from epd_opt.model_tree import PartType, known_keys, parts_at, places_of

CONFUSIONS: Mapping[str, str] = {
    "burstiness": "use interarrival_scv, the squared variation of the gaps (other tools mean its inverse)",
    "cv": "use interarrival_scv, the square of it",
    "cost_per_hour": "use price: {usd_per_hour: ...}",
    "count_max": "use stock",
    "e2e_s": "use e2e_ms, in milliseconds",
    "gpu": "use sku",
    "gpus": "use devices, a list of {sku, price, stock}",
    "gpu_memory_utilization": "use memory_fraction",
    "input_tokens": "use text_tokens; image tokens are counted from images",
    "isl": "use text_tokens",
    "itl_s": "use itl_ms, in milliseconds",
    "max_num_batched_tokens": "use max_batched_tokens",
    "max_num_seqs": "use max_sequences",
    "osl": "use output_tokens",
    "prompt_tokens": "use text_tokens; image tokens are counted from images",
    "qps": "use rate_per_s, requests per second",
    "rate": "use rate_per_s, requests per second",
    "rate_per_hour": "use rate_per_s, requests per second",
    "rate_per_min": "use rate_per_s, requests per second",
    "request_rate": "use rate_per_s, requests per second",
    "rps": "use rate_per_s, requests per second",
    "tp": "use tensor_parallel: [1, 2, 4], or parallelism",
    "tpot_ms": "use itl_ms",
    "tpot_s": "use itl_ms, in milliseconds",
    "ttft": "use ttft_ms, in milliseconds",
    "ttft_s": "use ttft_ms, in milliseconds",
    "usd_per_h": "use usd_per_hour",
}
"""Keys that other tools use, or that carry another unit, and what to write here."""

_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "more than"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"),
}

_KINDS = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}


def problems_of(error: ValidationError, root: PartType, document: object) -> list[Problem]:
    """Translate; ``root`` is the part that was validated and ``document`` what it was given."""
    problems: dict[Location, Problem] = {}
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and details["input"]:
            continue  # its entries are complained about one by one
        where = tuple(key for key in details["loc"] if not (isinstance(key, str) and key.startswith(TAG)))
        message, hint = _explain(details, where, root)
        found = Complaint(where=where, message=message, hint=hint, about_key=details["type"] == "extra_forbidden")
        problems.setdefault(where, to_problem(found, document))
    return list(problems.values())


def to_problem(found: Complaint, document: object) -> Problem:
    """A complaint about a document, not yet placed in a file."""
    return Problem(
        location=found.where,
        path=address(found.where, document),
        message=found.message,
        hint=found.hint,
        about_key=found.about_key,
    )


def _explain(details: Any, where: Location, root: PartType) -> tuple[str, str]:
    kind, context, found = details["type"], details.get("ctx", {}), details["input"]
    if kind == "epd_opt":
        return context["message"], context["hint"]
    if kind == "missing":
        return _missing(where, root)
    if kind == "extra_forbidden":
        return _unknown_key(str(where[-1]), where[:-1], root)
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"found {shown(found)}, expected {words} {context[key]:g}", ""
    if kind in _KINDS:
        return f"found {shown(found)}, expected {_KINDS[kind]}", _mend_kind(kind, found)
    if kind == "literal_error":
        return _not_one_of(found, context["expected"])
    if kind == "too_long":
        return f"found {len(found)} entries, expected at most {context['max_length']}", _of_list(where, root)
    if kind in ("too_short", "string_too_short"):
        return "found nothing, expected at least one entry" if kind == "too_short" else "found an empty text", ""
    return f"found {shown(found)}: {details['msg']}", ""


def _missing(where: Location, root: PartType) -> tuple[str, str]:
    for part in parts_at(root, where[:-1]):
        for name, field in part.model_fields.items():
            if (field.alias or name) == where[-1]:
                return "missing", _opening(field.description or "")
    found = int(where[-1])
    return f"found {found} {'entry' if found == 1 else 'entries'}, expected one more", _of_list(where, root)


def _of_list(where: Location, root: PartType) -> str:
    """What the list is that an entry belongs to: the description of the nearest field around it."""
    for length in range(len(where), 0, -1):
        for part in parts_at(root, where[: length - 1]):
            for name, field in part.model_fields.items():
                if (field.alias or name) == where[length - 1]:
                    return _opening(field.description or "")
    return ""


def _opening(description: str) -> str:
    first = description.split(" ", 1)[0]
    return (description if first.isupper() and len(first) > 1 else description[:1].lower() + description[1:]).rstrip(".")


def _unknown_key(key: str, parent: Location, root: PartType) -> tuple[str, str]:
    known = known_keys(parts_at(root, parent))
    message = f"unknown key {shown(key)}"
    close = get_close_matches(key, known, n=3, cutoff=0.6)
    if key in CONFUSIONS:
        return message, CONFUSIONS[key]
    elsewhere = [place for place in places_of(root, key) if place[:-1] != _without_indices(parent)]
    if elsewhere:
        return message, f"{key} belongs at {' or '.join(format_path(place) for place in elsewhere[:3])}"
    if close:
        return message, f"did you mean {' or '.join(close)}?"
    if _without_indices(parent) == ("devices",):
        return message, f"what overrides the device's card goes under card; known keys are {', '.join(known)}"
    return message, f"known keys are {', '.join(known)}"


def _without_indices(location: Sequence[str | int]) -> tuple[str, ...]:
    return tuple(key for key in location if isinstance(key, str))


def _mend_kind(kind: str, found: object) -> str:
    if found is None:
        return "fill it in, or leave the key out"
    if _KINDS[kind] == "a text" and isinstance(found, int | float):
        return f'put it in quotes: "{shown(found)}"'
    if _KINDS[kind] == "a list" and not isinstance(found, Mapping | type(None)):
        return f"a list of one: [{found}]"
    return ""


def _not_one_of(found: object, expected: str) -> tuple[str, str]:
    allowed = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    close = get_close_matches(str(found).lower(), allowed, n=1, cutoff=0.6)
    message = f"found {shown(found)}, expected {' or '.join(allowed)}"
    return message, f"did you mean {close[0]}?" if close else ""
