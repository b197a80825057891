"""Iteration and prompt times from the kernel tables of the package aiconfigurator-core, asked once and kept.

A worker's table holds times on a fixed grid, from which :mod:`epd_models.sources.silicon` makes ratios. Building one loads
the package's data (seconds), so tables are kept for the process and, as JSON files, under the user's cache directory:
``$XDG_CACHE_HOME`` or ``~/.cache``, then ``epd-opt/silicon`` and the package's version. A file that is damaged, of another
question or half written is ignored and written anew; writing replaces the whole file at once, so several processes may use
the directory together.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from epd_models.source import SourceUnavailable

PACKAGE = "aiconfigurator-core"
_MODULE = "aiconfigurator_core"

BATCHES = tuple(2**k for k in range(11))
"""Sequences of an iteration on one rank of attention data parallelism."""
CONTEXTS = tuple(128 * 2**k for k in range(11))
PROMPTS = tuple(32 * 2**k for k in range(12))
"""Tokens of context, and of prompts, that a table is asked for, as far as the model takes them."""


class NotCovered(ValueError):
    """A question that the package's tables do not answer; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One worker as the package names it.

    Attributes
    ----------
    checkpoint : str
        Hugging Face name of a model.
    system, backend : str
        GPU system and engine.
    tensor, pipeline, attention_data, expert, expert_slices : int
        Parallel degrees; ``expert_slices`` ranks share each expert.
    modes : tuple of (str, str)
        Formats, as keyword arguments of the package.
    longest : int
        Most tokens that the model takes.
    """

    checkpoint: str
    system: str
    backend: str
    tensor: int
    pipeline: int
    attention_data: int
    expert: int
    expert_slices: int
    modes: tuple[tuple[str, str], ...]
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Answers for one worker.

    Attributes
    ----------
    version : str
        Of the package.
    modes : str
        Formats that the times are for, in words.
    iterations : tuple of (batch, context, seconds)
        Iterations over ``batch`` sequences on each rank of attention data parallelism.
    prompts : tuple of (tokens, seconds)
        Prompts read, one on each rank of attention data parallelism.
    """

    version: str
    modes: str
    iterations: tuple[tuple[float, float, float], ...]
    prompts: tuple[tuple[float, float], ...]

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "version": self.version,
            "modes": self.modes,
            "iterations": [list(point) for point in self.iterations],
            "prompts": [list(point) for point in self.prompts],
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Table:
        """From :meth:`plain`.

        Raises
        ------
        ValueError
            A number is missing, not finite or not above 0, or there are none.
        """
        try:
            iterations = tuple((float(b), float(c), float(s)) for b, c, s in plain["iterations"])
            prompts = tuple((float(n), float(s)) for n, s in plain["prompts"])
            table = cls(version=str(plain["version"]), modes=str(plain["modes"]), iterations=iterations, prompts=prompts)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a table: {error}") from None
        numbers = [value for point in (*iterations, *prompts) for value in point]
        if not iterations or not prompts or not all(math.isfinite(value) and value > 0.0 for value in numbers):
            raise ValueError("not a table: numbers are missing or not above 0")
        return table


class Engine(Protocol):
    """What is used of the package's compiled engine: milliseconds of prompts read and of iterations."""

    def predict_prefill_latency(self, bs: int, isl: int, prefix: int = 0) -> float:
        """Of reading ``bs`` prompts of ``isl`` tokens, ``prefix`` of which are cached."""

    def predict_decode_latency(self, bs: int, isl: int, osl: int = 2) -> float:
        """Of the ``osl - 1`` iterations after prompts of ``isl`` tokens."""


class Package(Protocol):
    """The package, or what stands in for it."""

    @property
    def version(self) -> str:
        """Its version."""

    def knows(self, checkpoint: str) -> bool:
        """Whether it holds a model's configuration."""

    def has_system(self, system: str) -> bool:
        """Whether it has tables of a GPU system."""

    def compile(self, question: Question) -> Engine:
        """An engine for a worker; raises whatever the package raises."""


class Installed:
    """The package as it is installed, imported when it is first asked."""

    @property
    def version(self) -> str:
        """Its version."""
        return importlib.metadata.version(PACKAGE)

    def knows(self, checkpoint: str) -> bool:
        """Whether it ships a model's configuration: one that it does not would be looked for on the internet.

        Raises
        ------
        SourceUnavailable
            The package cannot be imported.
        """
        try:
            from aiconfigurator_core.sdk.common import DefaultHFModels
        except ImportError as error:
            raise SourceUnavailable(f"{PACKAGE} is installed but cannot be imported: {error}") from None
        return checkpoint in DefaultHFModels

    def has_system(self, system: str) -> bool:
        """Whether it ships the description of a GPU system."""
        found = importlib.util.find_spec(_MODULE)
        roots = [] if found is None else found.submodule_search_locations or []
        return any((Path(root) / "systems" / f"{system}.yaml").is_file() for root in roots)

    def compile(self, question: Question) -> Engine:
        """Compile an engine."""
        from aiconfigurator_core.sdk.engine import EngineHandle

        engine: Engine = EngineHandle.compile(
            question.checkpoint,
            question.system,
            question.backend,
            tp_size=question.tensor,
            pp_size=question.pipeline,
            attention_dp_size=question.attention_data,
            moe_tp_size=question.expert_slices,
            moe_ep_size=question.expert,
            **dict(question.modes),
        )
        return engine


def installed() -> Package | None:
    """The package; None where it is not installed."""
    try:
        importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None
    return Installed()


_kept: dict[tuple[str, Question], Table | NotCovered] = {}


def table_of(question: Question, package: Package, *, folder: Path | None = None) -> Table:
    """The table of a worker: kept in the process, on disk, or asked of the package.

    Parameters
    ----------
    folder : Path, optional
        Where tables are kept on disk; the user's cache directory where absent, and none where the user has no home.

    Raises
    ------
    NotCovered
        The package's tables do not answer, with the reason.
    """
    key = package.version, question
    found = _kept.get(key)
    if found is None:
        kept_in = cache_folder() if folder is None else folder
        path = None if kept_in is None else _path(question, package.version, kept_in)
        found = None if path is None else _read(path, question)
        if found is None:
            try:
                found = _ask(question, package)
            except NotCovered as error:
                found = error
            else:
                if path is not None:
                    _write(path, question, found)
        _kept[key] = found
    if isinstance(found, NotCovered):
        raise NotCovered(str(found))
    return found


def forget() -> None:
    """Drop the tables kept in the process."""
    _kept.clear()


def cache_folder() -> Path | None:
    """Where tables are kept on disk; None where the user has no home."""
    stated = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(stated) if stated else Path.home() / ".cache") / "epd-opt" / "silicon"
    except RuntimeError:
        return None


def _ask(question: Question, package: Package) -> Table:
    with _quiet():
        # Whatever goes wrong inside the package, from assertions to errors of its own, is a question it cannot answer.
        try:
            engine = package.compile(question)
        except Exception as error:
            raise NotCovered(_reason(error)) from None
        errors: list[str] = []
        iterations = [
            (float(batch), float(context), seconds)
            for context in CONTEXTS
            if context <= question.longest
            for batch in BATCHES
            if (seconds := _seconds(lambda b=batch, c=context: engine.predict_decode_latency(b, c), errors)) is not None
        ]
        prompts = [
            (float(tokens), seconds)
            for tokens in PROMPTS
            if tokens <= question.longest
            if (seconds := _seconds(lambda n=tokens: engine.predict_prefill_latency(1, n), errors)) is not None
        ]
    if not iterations or not prompts:
        what = "prompts" if iterations else "iterations"
        raise NotCovered(f"no times of {what}: {errors[-1] if errors else 'the model takes no such sizes'}")
    modes = ", ".join(f"{name.removesuffix('_quant_mode')} {mode}" for name, mode in question.modes)
    return Table(
        version=package.version,
        modes=modes or "formats as published",
        iterations=tuple(iterations),
        prompts=tuple(prompts),
    )


def _seconds(ask: Any, errors: list[str]) -> float | None:
    """One answer; None, with the reason noted, where there is none."""
    try:
        milliseconds = float(ask())
    except Exception as error:
        errors.append(_reason(error))
        return None
    if not math.isfinite(milliseconds) or milliseconds <= 0.0:
        errors.append(f"an answer of {milliseconds:g} ms")
        return None
    return milliseconds / 1e3


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the package's remarks on standard error."""
    logger = logging.getLogger(_MODULE)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _path(question: Question, version: str, folder: Path) -> Path:
    name = hashlib.sha256(_text(_key(question)).encode()).hexdigest()[:32]
    return folder / version / f"{name}.json"


def _key(question: Question) -> dict[str, Any]:
    grid = {"batches": BATCHES, "contexts": CONTEXTS, "prompts": PROMPTS}
    return {**asdict(question), **grid}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _read(path: Path, question: Question) -> Table | None:
    """A table from disk; None where there is none, or not one for this question."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if _text(content["question"]) != _text(_key(question)):
            return None
        if content["sha256"] != hashlib.sha256(_text(content["table"]).encode()).hexdigest():
            return None
        return Table.of_plain(content["table"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, question: Question, table: Table) -> None:
    """Keep a table; where the disk refuses, the next process asks again."""
    plain = table.plain()
    content = {"question": _key(question), "table": plain, "sha256": hashlib.sha256(_text(plain).encode()).hexdigest()}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(_text(content))
            os.replace(draft, path)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
