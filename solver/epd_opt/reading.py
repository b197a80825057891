"""Reading instances from YAML or JSON, so that every complaint has its ``file:line:column``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

from epd_opt.address import address
from epd_opt.errors import InvalidInput, Problem, UsageError
from epd_opt.fields import Location, shown
from epd_opt.instance import SCHEMA, Instance
from epd_opt.origin import Origin, from_assignment
from epd_opt.paths import locate, set_value, split_assignment
from epd_opt.scenarios import cases
from epd_opt.source import Source, parse

P = ParamSpec("P")
R = TypeVar("R")

_CARD_SUFFIXES = (".json", ".yaml", ".yml")
_PATH_OPENINGS = ("./", "../", "/", "~")


def read(source: str | Path | IO[str] | IO[bytes] | Mapping[str, Any], overrides: Sequence[str] = ()) -> Instance:
    """Read an instance.

    Parameters
    ----------
    source
        A path, ``-`` for standard input, an open file, or a mapping that was parsed already.
    overrides
        ``PATH=VALUE`` assignments, made before validation; the value is YAML.

    Raises
    ------
    InvalidInput
        Every problem of the file, in its order.
    UsageError
        An override is not ``PATH=VALUE``.

    Notes
    -----
    A ``model`` or a device's ``card`` or ``coefficients`` may be the path of another file (ending in .json, .yaml or .yml,
    or starting with ``./``, ``../``, ``/`` or ``~``), and a device's ``performance.profile`` that of a CSV file, relative to
    the instance, or to the working directory where it comes from an override or the instance has no file. Its content is
    embedded, so the instance stands for itself.
    """
    parsed, folder = _load(source)
    if not isinstance(parsed.value, Mapping):
        raise InvalidInput([parsed.place(_whole(f"found {shown(parsed.value)}, expected a mapping", _ADD_SCHEMA))])
    problems = list(parsed.problems)
    document: dict[str, Any] = dict(parsed.value)
    _demand_schema(document, parsed)
    origins: dict[Location, str] = {}
    files: dict[Location, tuple[str, bytes]] = {}
    for text in overrides:
        document, assigned = _override(document, text)
        origins.update(assigned)
    origin = Origin(source=parsed, document=document, assigned=origins, files=files)
    document, embedding_problems = _embed(document, folder, origins, files)
    problems += [origin.place(problem) for problem in embedding_problems]
    covered = {problem.location for problem in [*parsed.problems, *embedding_problems]}
    try:
        instance = Instance(**document)
    except InvalidInput as error:
        found = [problem for problem in error.problems if problem.location not in covered]
        raise InvalidInput([*problems, *(origin.place(problem) for problem in found)]) from None
    if problems:
        raise InvalidInput(problems)
    instance = instance.from_origin(origin)
    with instance.placing():
        cases(instance)
    return instance


def complaining_in_place(reader: Callable[[Any], Any] = read) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate what works on an instance, its first parameter: whatever it complains about has its place in the file.

    Parameters
    ----------
    reader : callable
        Makes an instance, or a plan, of whatever else may stand in its place.
    """

    def decorated(work: Callable[P, R]) -> Callable[P, R]:
        first = next(iter(inspect.signature(work).parameters))

        @functools.wraps(work)
        def placed(*args: P.args, **kwargs: P.kwargs) -> R:
            bound = inspect.signature(work).bind(*args, **kwargs)
            given = bound.arguments[first]
            given = bound.arguments[first] = given if isinstance(given, Instance) else reader(given)
            with given.placing() if isinstance(given, Instance) else contextlib.nullcontext():
                return work(*bound.args, **bound.kwargs)

        return placed

    return decorated


_ADD_SCHEMA = f"an instance opens with schema: {SCHEMA}"


def _whole(message: str, hint: str) -> Problem:
    return Problem(message=message, hint=hint)


def _load(source: str | Path | IO[str] | IO[bytes] | Mapping[str, Any]) -> tuple[Source, Path]:
    """The parsed source and the folder that its relative paths start from."""
    if isinstance(source, Mapping):
        return Source.of_mapping(source), Path()
    if isinstance(source, str | Path):
        if str(source) == "-":
            return parse(sys.stdin.buffer.read(), "<stdin>"), Path()
        return parse(_bytes(Path(source)), str(source)), Path(source).parent
    name = getattr(source, "name", None)
    return parse(source.read(), name if isinstance(name, str) else "<stream>"), Path()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        close = get_close_matches(path.name, siblings, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"looked in {path.parent.resolve()}"
        raise InvalidInput([Problem(file=str(path), message="no such file", hint=hint)]) from None
    except IsADirectoryError:
        raise InvalidInput([Problem(file=str(path), message="is a directory, expected a file")]) from None
    except OSError as error:
        raise InvalidInput([Problem(file=str(path), message=f"cannot be read: {error.strerror}")]) from None


def _demand_schema(document: Mapping[str, Any], parsed: Source) -> None:
    """Refuse other kinds of documents before their keys are complained about."""
    found = document.get("schema")
    if found == SCHEMA:
        return
    if found is None:
        message, hint = "missing", f"add schema: {SCHEMA} as the first line"
    else:
        message, hint = f"found {shown(found)}, expected {SCHEMA}", "this version reads no other"
        if found == "epd-opt/plan/v1":
            hint = "this is a plan; the instance it was made for is its instance_document"
    problem = Problem(path="schema", message=message, hint=hint, location=("schema",))
    raise InvalidInput([*parsed.problems, parsed.place(problem)])


def _override(document: dict[str, Any], text: str) -> tuple[dict[str, Any], dict[Location, str]]:
    """The document after ``PATH=VALUE``, and what to call each place that was assigned."""
    assignment = split_assignment(text)
    if assignment is None:
        raise UsageError(f"--set {text}: expected PATH=VALUE, as in --set solver.gap=0")
    path, value_text = assignment
    origin = f"--set {path}"
    value = parse(value_text, origin, empty_is_null=True)
    if value.problems:
        raise InvalidInput(value.problems)
    try:
        locations = locate(document, path, existing=False)
        return set_value(document, path, value.value), dict.fromkeys(locations, origin)
    except InvalidInput as error:
        raise InvalidInput(from_assignment(problem, origin) for problem in error.problems) from None


def _embed(
    document: dict[str, Any], folder: Path, origins: Mapping[Location, str], files: dict[Location, tuple[str, bytes]]
) -> tuple[dict[str, Any], list[Problem]]:
    """Put the content of referenced files in place of their paths, and note the files."""
    embedded = dict(document)
    problems: list[Problem] = []

    def content(location: Location, text: str, read: Callable[[Path, bytes], Any] = _reference) -> Any:
        assigned = any(location[:length] in origins for length in range(1, len(location) + 1))
        start = Path() if assigned else folder
        path = start / Path(text).expanduser()
        path = path / "config.json" if path.is_dir() else path
        try:
            data = _bytes(path)
            files[location] = (str(path), data)
            return read(path, data)
        except InvalidInput as error:
            for problem in error.problems:
                if problem.line is None:
                    message = f"{problem.file}: {problem.message}"
                    problem = replace(problem, file="", path=address(location, document), message=message)
                problems.append(replace(problem, location=location))
            return text

    model = document.get("model")
    if isinstance(model, str) and is_path(model):
        embedded["model"] = content(("model",), model)
    devices = document.get("devices")
    if isinstance(devices, list):
        embedded["devices"] = list(devices)
        for index, entry in enumerate(devices):
            named = [
                key for key in ("card", "coefficients") if isinstance(entry, Mapping) and isinstance(entry.get(key), str)
            ]
            if named:
                cards = {key: content(("devices", index, key), entry[key]) for key in named}
                embedded["devices"][index] = {**entry, **cards}
        for index, entry in enumerate(embedded["devices"]):
            performance = entry.get("performance") if isinstance(entry, Mapping) else None
            if isinstance(performance, Mapping) and isinstance(performance.get("profile"), str):
                written = performance["profile"]
                text = content(("devices", index, "performance", "profile"), written, _table)
                profile = {"file": written, "csv": text} if text is not written else written
                embedded["devices"][index] = {**entry, "performance": {**performance, "profile": profile}}
    return embedded, problems


def _table(path: Path, data: bytes) -> str:
    """The content of a CSV file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not a text file in UTF-8 (byte {error.start})"
        raise InvalidInput([Problem(file=str(path), message=message)]) from None


def is_path(text: str) -> bool:
    """Whether a model is given as the path of a file and not as a catalogue name.

    >>> is_path("models/config.json"), is_path("Qwen/Qwen3-32B")
    (True, False)
    """
    return text.lower().endswith(_CARD_SUFFIXES) or text.startswith(_PATH_OPENINGS)


def _reference(path: Path, data: bytes) -> dict[str, Any]:
    """A card, or a Hugging Face configuration under the name of its model."""
    if path.suffix.lower() != ".json":
        source = parse(data, str(path))
        if source.problems:
            raise InvalidInput(source.problems)
        return _mapping(source.value, path)
    try:
        content = _mapping(json.loads(data, parse_constant=str), path)
    except json.JSONDecodeError as error:
        problem = Problem(file=str(path), line=error.lineno, column=error.colno, message=f"not JSON: {error.msg}")
        raise InvalidInput([problem]) from None
    except UnicodeDecodeError:
        raise InvalidInput([Problem(file=str(path), message="not a text file in UTF-8")]) from None
    if not {"model_type", "architectures"} & content.keys():
        return content
    name = content.get("_name_or_path") or (path.resolve().parent.name if path.stem == "config" else path.stem)
    return {"name": name, "huggingface_config": content}


def _mapping(value: object, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        message = f"found {shown(value)}, expected a mapping"
        raise InvalidInput([Problem(file=str(path), line=1, column=1, message=message)])
    return value
