"""Times from a user's measurements: interpolated between them, never extrapolated silently."""

from __future__ import annotations

import difflib
import hashlib
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from epd_models.architecture import Architecture
from epd_models.candidate import Stage
from epd_models.catalog import UnknownCard
from epd_models.measurements import Complaint, Measurement, MeasurementsError, read_measurements
from epd_models.parallelism import IllegalParallelism, Parallelism
from epd_models.precision import UnsupportedPrecision
from epd_models.provenance import Confidence, FittedError
from epd_models.ratios import ImageRatios, LanguageRatios, rounded
from epd_models.serving import FORMATS, Unpredictable, named_device, named_model, run_of
from epd_models.source import SourceName, Subject, TimeOrigin, Uncovered
from epd_models.sources.analytic import Analytic
from epd_models.sources.closed_loop import LoopRun, prompt_ratios
from epd_models.sources.points import (
    Iteration,
    Sized,
    curve,
    iteration_ratio,
    language_ratios,
    left_out_error,
    prompt_ratio,
)
from epd_models.stage_rows import StageRow, is_stage_file, read_stage_rows
from epd_models.stages.encode import encode_time, received_megapixels
from epd_models.vision import ImageLoad, image_load
from epd_models.worker import Worker

_CONTRADICTS = 1.2
"""Ratio of two times of one setting from which they contradict each other; closer ones are averaged."""
_ABSURD = 100.0
"""Median ratio of a stage from which its times must be in another unit than their column says."""
_STRAYS = 3.0
"""Factor between a run's iterations and the median of its worker's from which the run is left out: a disturbed run, or one
with other settings than its columns say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Measured ratios of one device entry.

    Attributes
    ----------
    file : str
        Where they come from, for messages.
    strict : bool
        Whether stages, cuts and sizes without measurements are refused instead of left to the model.
    workers : Mapping[Parallelism, LanguageRatios]
        Ratios by parallel degrees.
    encoder : ImageRatios
        Of images.
    errors : Mapping
        For each measured (degrees, stage), how far its points lie from where their neighbours would put them.
    counted : Mapping
        For each measured (degrees, stage), how many rows stand behind it.
    left_out : tuple of str
        Rows that are about the entry and could not be used, with the reason, in words.
    """

    file: str
    strict: bool
    about: str
    workers: Mapping[Parallelism, LanguageRatios]
    encoder: ImageRatios
    errors: Mapping[tuple[Parallelism, Stage], FittedError | None]
    counted: Mapping[tuple[Parallelism, Stage], int]
    left_out: tuple[str, ...]

    @property
    def name(self) -> SourceName:
        """As in plans."""
        return "profile"

    def language(self, worker: Worker) -> LanguageRatios:
        """Ratios of the worker's parallel degrees, where they were measured."""
        return self.workers.get(worker.cut, LanguageRatios(strict=self.strict))

    def images(self, worker: Worker) -> ImageRatios:
        """Ratios of the device's images."""
        return self.encoder

    def check(self, worker: Worker, stage: Stage) -> None:
        """Refuse what was not measured, where the profile is strict."""
        if self.strict and not self._measured(worker, stage):
            raise Uncovered(f"{self._missing(worker, stage)}, and the profile is strict")

    def origin(self, worker: Worker, stage: Stage) -> TimeOrigin:
        """The profile, or the model with a warning where there are no rows."""
        if not self._measured(worker, stage):
            missing = f"{self._missing(worker, stage)}: its times are the analytic model's"
            return replace(Analytic().origin(worker, stage), warning=missing)
        key = (Parallelism() if stage == "encode" else worker.cut, stage)
        rows = self.counted[key]
        parts = [f"{rows} row{'s' if rows > 1 else ''} of {self.file}, interpolated"]
        if stage == "encode" and (self.encoder.device is None or self.encoder.host is None):
            parts.append(f"the {'host' if self.encoder.host is None else 'device'} work of images is the analytic model's")
        return TimeOrigin(
            stage=stage,
            source="profile",
            confidence=Confidence.MEASURED,
            fitted_error=self.errors[key],
            note="; ".join(parts),
        )

    def remarks(self) -> tuple[str, ...]:
        """Rows that are about the entry and could not be used."""
        return self.left_out

    def embedded(self) -> Mapping[str, Any]:
        """Nothing: the instance holds the file."""
        return {}

    def _measured(self, worker: Worker, stage: Stage) -> bool:
        if stage == "encode":
            return self.encoder.device is not None or self.encoder.host is not None
        ratios = self.language(worker)
        return (ratios.prefill if stage == "prefill" else ratios.decode) is not None

    def _missing(self, worker: Worker, stage: Stage) -> str:
        if stage == "encode":
            return f"{self.file} has no usable row of encode for {self.about}"
        cuts = sorted(cut.label for cut, at in self.counted if at == stage)
        known = f"; it has {', '.join(cuts)}" if cuts else ""
        return f"{self.file} has no usable row of {stage} at {worker.cut.label} for {self.about}{known}"


@dataclass(slots=True)
class _Gathered:
    """Points by parallel degrees, and what went wrong on the way to them."""

    iterations: dict[Parallelism, list[Iteration]] = field(default_factory=dict)
    prompts: dict[Parallelism, list[Sized]] = field(default_factory=dict)
    images: dict[str, list[Sized]] = field(default_factory=dict)
    lines: dict[tuple[Stage, int], float] = field(default_factory=dict)
    counted: dict[tuple[Parallelism, Stage], int] = field(default_factory=dict)
    left_out: dict[str, list[int]] = field(default_factory=dict)
    complaints: list[Complaint] = field(default_factory=list)

    def count(self, line: int, cut: Parallelism, stage: Stage, ratio: float) -> None:
        """Note the ratio that a row gave."""
        self.lines[stage, line] = ratio
        self.counted[cut, stage] = self.counted.get((cut, stage), 0) + 1

    def leave_out(self, line: int, reason: str) -> None:
        self.left_out.setdefault(reason, []).append(line)


def build(settings: Mapping[str, Any], subject: Subject, *, embedded: Mapping[str, Any]) -> Profile:
    """Ratios of one device entry from a file of serving runs or of stage times.

    Parameters
    ----------
    settings : mapping
        ``file`` (name, for messages), ``csv`` (content) and ``strict``.

    Raises
    ------
    MeasurementsError
        The file makes no sense, contradicts itself, or says nothing about the entry.
    """
    # Studies read the same file for every variation of an instance.
    key = hashlib.sha256(repr((sorted(settings.items()), subject)).encode("utf-8", "surrogatepass")).hexdigest()
    if key not in _built:
        if len(_built) >= _MOST_BUILT:
            _built.clear()
        _built[key] = _build(str(settings["file"]), str(settings["csv"]), bool(settings.get("strict", False)), subject)
    return _built[key]


_built: dict[str, Profile] = {}
_MOST_BUILT = 64


def _build(file: str, text: str, strict: bool, subject: Subject) -> Profile:
    gathered = _Gathered()
    try:
        if is_stage_file(text):
            _gather_stages(read_stage_rows(text, file=file), subject, gathered)
        else:
            _gather_runs(read_measurements(text, file=file), subject, gathered)
    except _Complaints as error:
        raise MeasurementsError(file, error.complaints) from None
    _check_units(gathered)
    if gathered.complaints:
        raise MeasurementsError(file, gathered.complaints)
    return _profile(file, strict, subject, gathered)


def _profile(file: str, strict: bool, subject: Subject, gathered: _Gathered) -> Profile:
    workers: dict[Parallelism, LanguageRatios] = {}
    errors: dict[tuple[Parallelism, Stage], FittedError | None] = {}
    for cut in sorted({*gathered.iterations, *gathered.prompts}):
        iterations, prompts = gathered.iterations.get(cut, []), gathered.prompts.get(cut, [])
        ratios = language_ratios(_worker(subject, cut), iterations, prompts, strict=strict)
        workers[cut] = ratios
        if ratios.decode is not None:
            errors[cut, "decode"] = left_out_error(ratios.decode.curves, "itl")
        measured = curve(prompts)
        if measured is not None:
            errors[cut, "prefill"] = left_out_error([measured], "ttft")
    whole = gathered.images.get("whole", [])
    device, host = (curve(gathered.images.get(part, whole)) for part in ("device", "host"))
    images = [found for found in dict.fromkeys((device, host)) if found is not None]
    if images:
        errors[Parallelism(), "encode"] = left_out_error(images, "image")
    return Profile(
        file=file,
        strict=strict,
        about=f"{subject.model.name} in {subject.precision.weights} on {subject.device.sku} with {subject.engine.name}",
        workers=workers,
        encoder=ImageRatios(device=device, host=host, strict=strict),
        errors=errors,
        counted=dict(gathered.counted),
        left_out=tuple(
            f"{file}: {len(lines)} row{'s' if len(lines) > 1 else ''} left out ({_lines(lines)}): {reason}"
            for reason, lines in gathered.left_out.items()
        ),
    )


def _lines(lines: Sequence[int]) -> str:
    shown = ", ".join(map(str, lines[:5]))
    return f"line{'s' if len(lines) > 1 else ''} {shown}{', ...' if len(lines) > 5 else ''}"


def _worker(subject: Subject, cut: Parallelism) -> Worker:
    return Worker.checked(
        model=subject.model, device=subject.device, cut=cut, precision=subject.precision, engine=subject.engine
    )


def _gather_runs(rows: Sequence[Measurement], subject: Subject, gathered: _Gathered) -> None:
    named = [(row.line, row.text("model"), row.text("gpu"), row.text("engine").lower()) for row in rows]
    columns = {"model": "model", "sku": "gpu"}
    chosen = _about(named, subject, gathered, columns)
    mine = [row for row in rows if row.line in chosen]
    _check_agreement(_run_settings(mine), gathered)
    if gathered.complaints:
        return
    runs: list[tuple[int, LoopRun]] = []
    for row in mine:
        run = _loop_run(row, subject, gathered)
        if run is not None:
            runs.append((row.line, run))
    for cut in sorted({run.worker.cut for _, run in runs}):
        _gather_worker([(line, run) for line, run in runs if run.worker.cut == cut], cut, gathered)


def _gather_worker(runs: Sequence[tuple[int, LoopRun]], cut: Parallelism, gathered: _Gathered) -> None:
    """Points of one worker from its runs."""
    prompts = prompt_ratios([run for _, run in runs])
    gathered.prompts[cut] = [Sized(size=length, ratio=rounded(ratio)) for length, ratio in prompts.items()]
    for line, run in runs:
        if run.run.prompt_tokens in prompts:
            gathered.count(line, cut, "prefill", prompts[run.run.prompt_tokens])
    ratios = {line: ratio for line, run in runs if (ratio := run.iteration_ratio(curve(gathered.prompts[cut]))) is not None}
    usual = statistics.median(ratios.values()) if ratios else 1.0
    for line, run in runs:
        ratio = ratios.get(line)
        if ratio is None:
            if run.run.prompt_tokens not in prompts:
                gathered.leave_out(
                    line, "its times tell of queues and prompts more than of iterations, or nothing explains them"
                )
        elif not usual / _STRAYS < ratio < usual * _STRAYS:
            gathered.leave_out(
                line, f"its iterations stray from those of the worker's other runs by more than {_STRAYS:g} times"
            )
        else:
            point = Iteration(batch=run.batch, context=run.context, ratio=rounded(ratio))
            gathered.iterations.setdefault(cut, []).append(point)
            gathered.count(line, cut, "decode", ratio)


def _loop_run(row: Measurement, subject: Subject, gathered: _Gathered) -> LoopRun | None:
    if row.ttft_s is None and row.itl_s is None:
        gathered.leave_out(row.line, "neither ttft_ms nor itl_ms is given")
        return None
    try:
        run, _ = run_of(row, model=subject.model, device=subject.device)
    except Unpredictable as error:
        gathered.leave_out(row.line, str(error))
        return None
    if run.prefill is not None:
        gathered.leave_out(row.line, "prefill and decode are apart; give stage times in their place")
        return None
    worker = run.decode.worker
    if worker.precision.weights != subject.precision.weights:
        gathered.leave_out(row.line, _other_weights(worker.precision.weights, subject))
        return None
    engine = subject.engine if worker.engine.speculative is None else worker.engine
    group = replace(run.decode, worker=replace(worker, precision=subject.precision, engine=engine))
    return LoopRun(run=replace(run, decode=group), ttft_s=row.ttft_s, itl_s=row.itl_s)


def _other_weights(found: str, subject: Subject) -> str:
    return f"weights in {found}, {subject.entry} runs them in {subject.precision.weights}"


def _run_settings(rows: Iterable[Measurement]) -> Iterator[tuple[tuple[object, ...], int, Mapping[str, float | None]]]:
    parts = ("n_gpu", "tp", "pp", "attention_dp", "moe_tp", "moe_ep", "isl", "osl", "concurrency")
    for row in rows:
        names = tuple(row.text(part).casefold() for part in ("model", "gpu", "dtype", "engine", "engine_version", "mode"))
        setting = (*names, *(row.numbers.get(part) for part in parts))
        yield setting, row.line, {"ttft_ms": row.ttft_s, "itl_ms": row.itl_s}


def _gather_stages(rows: Sequence[StageRow], subject: Subject, gathered: _Gathered) -> None:
    named = [(row.line, row.model, row.sku, row.engine) for row in rows]
    chosen = _about(named, subject, gathered, {"model": "model", "sku": "sku"})
    mine = [row for row in rows if row.line in chosen]
    _check_agreement(((row.setting, row.line, {"": row.seconds}) for row in mine), gathered)
    for row in mine:
        stated = _stated_format(row, "dtype", row.dtype, gathered)
        cache = _stated_format(row, "kv_cache", row.kv_cache, gathered)
        if row.stage == "encode":
            _gather_image(row, stated, subject, gathered)
        elif stated not in ("", subject.precision.weights):
            gathered.leave_out(row.line, _other_weights(stated, subject))
        elif cache not in ("", subject.precision.kv_cache):
            ours = subject.precision.kv_cache
            gathered.leave_out(row.line, f"a KV cache in {cache}, {subject.entry} keeps it in {ours}")
        else:
            _gather_tokens(row, subject, gathered)
    parts = {part for part, points in gathered.images.items() if points}
    if "whole" in parts and len(parts) > 1:
        first = next(row.line for row in mine if row.stage == "encode" and row.part != "whole")
        message = "whole encodes and parts of encodes are both given"
        gathered.complaints.append(Complaint(line=first, column="part", message=message, hint="keep one kind"))


def _stated_format(row: StageRow, column: str, text: str, gathered: _Gathered) -> str:
    if text and text not in FORMATS:
        near = difflib.get_close_matches(text, FORMATS, n=1)
        hint = f"did you mean {near[0]}?" if near else ""
        message = f"found {text!r}, expected one of {', '.join(FORMATS)}"
        gathered.complaints.append(Complaint(line=row.line, column=column, message=message, hint=hint))
    return FORMATS.get(text, "")


def _gather_tokens(row: StageRow, subject: Subject, gathered: _Gathered) -> None:
    try:
        worker = _worker(subject, row.cut)
    except (IllegalParallelism, UnsupportedPrecision) as error:
        gathered.complaints.append(Complaint(line=row.line, column="cut", message=str(error)))
        return
    if row.stage == "decode":
        lane = row.batch / row.cut.pipeline
        ratio = iteration_ratio(worker, batch=lane, context=row.context, seconds=row.seconds)
        gathered.iterations.setdefault(row.cut, []).append(Iteration(batch=lane, context=row.context, ratio=ratio))
    else:
        ratio = prompt_ratio(worker, new=row.new, cached=row.cached, prompts=row.batch, seconds=row.seconds)
        gathered.prompts.setdefault(row.cut, []).append(Sized(size=row.new, ratio=ratio))
    gathered.count(row.line, row.cut, row.stage, ratio)


def _gather_image(row: StageRow, stated: str, subject: Subject, gathered: _Gathered) -> None:
    tower = subject.model.vision
    if tower is None:
        message = f"{subject.model.name} has no vision tower"
        gathered.complaints.append(Complaint(line=row.line, column="stage", message=message))
        return
    if stated not in ("", subject.precision.encoder):
        ours = subject.precision.encoder
        gathered.leave_out(row.line, f"an encoder in {stated}, {subject.entry} runs it in {ours}")
        return
    side = round((row.megapixels * 1e6) ** 0.5)
    load: ImageLoad = image_load(tower, side, side)
    time = encode_time(
        tower,
        subject.device,
        subject.engine,
        load=load,
        megapixels=row.megapixels,
        encoder_format=subject.precision.encoder,
    )
    expected = {"whole": time.serial_s, "device": time.device_s, "host": time.host_s}[row.part]
    ratio = rounded(row.seconds / row.images / expected)
    received = received_megapixels(tower, load)
    size = row.megapixels if row.part == "host" else received
    gathered.images.setdefault(row.part, []).append(Sized(size=size, ratio=ratio))
    gathered.count(row.line, Parallelism(), "encode", ratio)


def _about(
    named: Sequence[tuple[int, str, str, str]], subject: Subject, gathered: _Gathered, columns: Mapping[str, str]
) -> set[int]:
    """Lines of the rows about the entry: its model, SKU and engine.

    Names that nothing is called are remarked on, as predictions of such rows are; where no row is about the entry they are
    complaints, since one of them may be meant for it.
    """
    ours_model = _names(subject.model.name, subject.model.aliases)
    ours_device = _names(subject.device.sku, (*subject.device.aliases, subject.entry))
    chosen: set[int] = set()
    unknown: list[Complaint] = []
    verdicts: dict[tuple[str, str], bool | str] = {}
    for line, model, sku, engine in named:
        for kind, name in (("model", model), ("sku", sku)):
            if (kind, name) not in verdicts:
                is_ours = _is_model(name, subject.model, ours_model) if kind == "model" else _is_device(name, ours_device)
                verdicts[kind, name] = is_ours
            verdict = verdicts[kind, name]
            if isinstance(verdict, str):
                ours = subject.model.name if kind == "model" else subject.device.sku
                hint = f"{subject.entry} is about {ours}"
                unknown.append(Complaint(line=line, column=columns[kind], message=verdict, hint=hint))
        if verdicts["model", model] is True and verdicts["sku", sku] is True and engine in ("", subject.engine.name):
            chosen.add(line)
    if chosen:
        for complaint in unknown:
            gathered.leave_out(complaint.line, complaint.message)
        return chosen
    if unknown:
        raise _Complaints(unknown)
    seen = list(dict.fromkeys(row[1:] for row in named))
    found = "; ".join(f"{m} on {s}{f' with {e}' if e else ''}" for m, s, e in seen[:4])
    wanted = f"{subject.model.name} on {subject.device.sku} with {subject.engine.name}"
    more = f" and {len(seen) - 4} more" if len(seen) > 4 else ""
    raise _Complaints([Complaint(line=named[0][0], message=f"no row is about {wanted}; the rows are about {found}{more}")])


class _Complaints(Exception):
    """What leaves nothing to go on with."""

    def __init__(self, complaints: Sequence[Complaint]) -> None:
        super().__init__(complaints)
        self.complaints = complaints


def _names(name: str, aliases: Iterable[str]) -> set[str]:
    return {one.strip().casefold() for one in (name, *aliases)}


def _is_model(name: str, model: Architecture, ours: set[str]) -> bool | str:
    if name.strip().casefold() in ours or name.rsplit("/", 1)[-1].strip().casefold() in ours:
        return True
    try:
        return named_model(name).name == model.name
    except (Unpredictable, UnknownCard) as error:
        return str(error)


def _is_device(name: str, ours: set[str]) -> bool | str:
    if name.strip().casefold() in ours:
        return True
    try:
        return named_device(name).sku.casefold() in ours
    except (Unpredictable, UnknownCard) as error:
        return str(error)


def _check_agreement(
    rows: Iterable[tuple[tuple[object, ...], int, Mapping[str, float | None]]], gathered: _Gathered
) -> None:
    """Rows of one setting must say about the same."""
    first: dict[tuple[object, ...], tuple[int, Mapping[str, float | None]]] = {}
    for setting, line, times in rows:
        earlier, theirs = first.setdefault(setting, (line, times))
        for column, mine in times.items():
            other = theirs[column]
            if mine is None or other is None or max(mine, other) <= _CONTRADICTS * min(mine, other):
                continue
            message = (
                f"contradicts line {earlier}: {mine * 1e3:.4g} ms here, {other * 1e3:.4g} ms there, in the same setting"
            )
            gathered.complaints.append(
                Complaint(line=line, column=column, message=message, hint="keep the one that is right")
            )


def _check_units(gathered: _Gathered) -> None:
    for stage in ("encode", "prefill", "decode"):
        ratios = {line: ratio for (at, line), ratio in gathered.lines.items() if at == stage}
        if not ratios:
            continue
        middle = statistics.median(ratios.values())
        if 1.0 / _ABSURD < middle < _ABSURD:
            continue
        hint = "were milliseconds given as seconds?" if middle > 1.0 else "were seconds given as milliseconds?"
        message = f"times of {stage} are {middle:.3g} times what the model expects, in the median of {len(ratios)} rows"
        gathered.complaints.append(Complaint(line=min(ratios), message=message, hint=hint))
