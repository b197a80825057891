"""Times from kernel tables of GPUs (package aiconfigurator-core, an extra): measured kernels added up per worker."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from epd_models.candidate import Stage
from epd_models.parallelism import Parallelism
from epd_models.provenance import Confidence, FittedError
from epd_models.ratios import ImageRatios, LanguageRatios
from epd_models.source import SourceName, SourceUnavailable, Subject, TimeOrigin, Uncovered
from epd_models.sources.analytic import Analytic
from epd_models.sources.kernel_tables import PACKAGE, NotCovered, Package, Question, Table, installed, table_of
from epd_models.sources.points import Iteration, Sized, iteration_ratio, language_ratios, prompt_ratio
from epd_models.worker import Worker

_KV_MODES = {"bf16": "bfloat16", "fp8": "fp8", "int8": "int8"}
_WEIGHT_MODES: Mapping[str, str] = {"bf16": "bfloat16", "fp8": "fp8", "int4": "int4_wo", "nvfp4": "nvfp4"}
"""Weights that a checkpoint published in another format is run in, as the package calls them."""
_MARKS: Mapping[str, tuple[str, ...]] = {"fp8": ("fp8",), "nvfp4": ("nvfp4", "fp4")}
"""What names of checkpoints published in a format end with."""


_COMPARED_VERSION = "0.12."
_COMPARED: Mapping[Stage, FittedError] = {
    "decode": FittedError(quantity="itl", median=0.131, p90=0.946, points=1428),
    "prefill": FittedError(quantity="ttft", median=0.288, p90=0.86, points=1428),
}
"""How far closed-loop predictions from its tables were off on public runs (docs/performance-sources.md)."""
_FAR = 2.0
"""Factor between tables and model from which a plan says so: one of them is about something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silicon:
    """Ratios from kernel tables, one table per parallel degrees, asked when they are first needed.

    Attributes
    ----------
    fallback : bool
        Whether the analytic model stands in, with a warning, where the tables do not answer.
    package : Package or None
        Who is asked; None where only ``known`` is at hand.
    known : Mapping
        Tables of an earlier plan by the label of their degrees, as plain data.
    """

    subject: Subject
    fallback: bool
    package: Package | None = field(compare=False)
    known: Mapping[str, Any]
    _ratios: dict[Parallelism, LanguageRatios | str] = field(default_factory=dict, compare=False, repr=False)
    _tables: dict[Parallelism, Table] = field(default_factory=dict, compare=False, repr=False)

    @property
    def name(self) -> SourceName:
        """As in plans."""
        return "silicon"

    def language(self, worker: Worker) -> LanguageRatios:
        """Ratios of the worker, where the tables answer."""
        found = self._found(worker)
        return LanguageRatios() if isinstance(found, str) else found

    def images(self, worker: Worker) -> ImageRatios:
        """None: images are not asked of the tables."""
        return ImageRatios()

    def check(self, worker: Worker, stage: Stage) -> None:
        """Refuse workers that the tables do not cover, unless the model may stand in; images are always the model's."""
        found = self._found(worker) if stage != "encode" else ""
        if isinstance(found, str) and found and not self.fallback:
            raise Uncovered(f"{found}; performance: {{silicon: {{fallback: analytic}}}} lets the analytic model stand in")

    def origin(self, worker: Worker, stage: Stage) -> TimeOrigin:
        """The tables, or the model with a warning where they do not answer."""
        if stage == "encode":
            analytic = Analytic().origin(worker, stage)
            return replace(analytic, note=f"{analytic.note}; {PACKAGE} is not asked for images")
        found = self._found(worker)
        if isinstance(found, str):
            return replace(Analytic().origin(worker, stage), warning=f"{found}: its {stage} times are the analytic model's")
        table = self._tables[worker.cut]
        apart = _apart(found, stage)
        return TimeOrigin(
            stage=stage,
            source="silicon",
            confidence=Confidence.THIRD_PARTY,
            fitted_error=_COMPARED.get(stage) if table.version.startswith(_COMPARED_VERSION) else None,
            note=f"kernel tables of {PACKAGE} {table.version} ({table.modes}), added up by it",
            warning=""
            if 1.0 / _FAR < apart < _FAR
            else f"kernel tables put {stage} at {apart:.2g} times the analytic model's time, in the median of their points",
        )

    def remarks(self) -> tuple[str, ...]:
        """None."""
        return ()

    def embedded(self) -> Mapping[str, Any]:
        """The tables asked so far, by the label of their degrees."""
        return {"package": PACKAGE, "tables": {cut.label: self._tables[cut].plain() for cut in sorted(self._tables)}}

    def _found(self, worker: Worker) -> LanguageRatios | str:
        """Ratios of a worker, or why there are none."""
        if worker.cut not in self._ratios:
            try:
                table = self._table(worker.cut)
            except NotCovered as error:
                self._ratios[worker.cut] = f"{PACKAGE} does not cover {self._about(worker.cut)}: {error}"
            else:
                self._tables[worker.cut] = table
                self._ratios[worker.cut] = _ratios_of(worker, table)
        return self._ratios[worker.cut]

    def _about(self, cut: Parallelism) -> str:
        s = self.subject
        return f"{s.model.name} in {s.precision.weights} on {s.device.sku} {cut.label} with {s.engine.name}"

    def _table(self, cut: Parallelism) -> Table:
        if cut.label in self.known:
            try:
                return Table.of_plain(self.known[cut.label])
            except ValueError as error:
                raise NotCovered(f"the plan's table is damaged ({error})") from None
        if self.package is None:
            raise NotCovered(f"the plan holds no table of it, and {PACKAGE} is not installed")
        reasons = []
        for question in _questions(self.subject, cut, self.package):
            try:
                return table_of(question, self.package)
            except NotCovered as error:
                reasons.append(str(error))
        raise NotCovered("; ".join(dict.fromkeys(reasons)) or "no checkpoint of these formats is known to it")


def _apart(ratios: LanguageRatios, stage: Stage) -> float:
    """Median ratio of a stage over the points of a table."""
    if stage == "decode" and ratios.decode is not None:
        return statistics.median(ratio for one in ratios.decode.curves for ratio in one.ratios)
    return statistics.median(ratios.prefill.ratios) if ratios.prefill is not None else 1.0


def build(settings: Mapping[str, Any], subject: Subject, *, embedded: Mapping[str, Any]) -> Silicon:
    """Kernel tables for one device entry.

    Parameters
    ----------
    settings : mapping
        ``fallback``: "analytic" or None.
    embedded : mapping
        Tables of an earlier plan, which do without the package.

    Raises
    ------
    SourceUnavailable
        The package is not installed, or knows neither the model nor the device nor the engine and nothing may stand in.
    """
    package = installed()
    if package is None and not embedded:
        raise SourceUnavailable(f"this needs the package {PACKAGE}; install it with: pip install 'epd-opt[silicon]'")
    return of_package(settings, subject, package, embedded=embedded)


def of_package(
    settings: Mapping[str, Any], subject: Subject, package: Package | None, *, embedded: Mapping[str, Any]
) -> Silicon:
    """:func:`build` with the package given."""
    silicon = Silicon(
        subject=subject,
        fallback=settings.get("fallback") == "analytic",
        package=package,
        known=dict(embedded.get("tables", {})),
    )
    if package is not None and not embedded and not silicon.fallback:
        missing = _unknown(subject, package)
        if missing:
            hint = "performance: {silicon: {fallback: analytic}} lets the analytic model stand in"
            raise SourceUnavailable(f"{missing} ({hint})")
    return silicon


def _unknown(subject: Subject, package: Package) -> str:
    """What of an entry the package does not know at all; empty where it knows everything."""
    about = f"{PACKAGE} {package.version}"
    if subject.engine.name not in _BACKENDS:
        return f"{about} has tables of {', '.join(_BACKENDS)}; the engine is {subject.engine.name}"
    if _system(subject, package) is None:
        return f"{about} has no tables of {subject.device.sku}"
    if not any(package.knows(name) for name in (subject.model.name, *subject.model.aliases)):
        return f"{about} does not know the model {subject.model.name}"
    return ""


_BACKENDS = ("vllm", "sglang", "trtllm")


def _system(subject: Subject, package: Package) -> str | None:
    names = [name.strip().lower().replace("-", "_") for name in (subject.device.sku, *subject.device.aliases)]
    return next((name for name in names if package.has_system(name)), None)


def _questions(subject: Subject, cut: Parallelism, package: Package) -> Iterator[Question]:
    """What to ask about a worker, the closest to what it runs first: a checkpoint published in its format with the formats
    that the package reads off it, then the published model run in that format."""
    missing = _unknown(subject, package)
    system = _system(subject, package)
    if missing or system is None:
        raise NotCovered(missing)
    weights, cache = subject.precision.weights, _KV_MODES.get(subject.precision.kv_cache)
    if cache is None:
        raise NotCovered(f"a KV cache in {subject.precision.kv_cache} is not among its formats")
    checkpoints = [name for name in (subject.model.name, *subject.model.aliases) if package.knows(name)]
    marks = _MARKS.get(weights, ())
    marked = [name for name in checkpoints if name.lower().endswith(marks)] if marks else []
    plain = [name for name in checkpoints if not name.lower().endswith(("fp8", "fp4"))]
    ways: list[tuple[str, tuple[tuple[str, str], ...]]] = [(name, ()) for name in marked[:1]]
    if weights == subject.model.native_weights:
        ways = [(name, ()) for name in plain[:1]] + ways
    mode = _WEIGHT_MODES.get(weights)
    if mode is not None:
        ways += [(name, (("gemm_quant_mode", mode), ("moe_quant_mode", mode))) for name in plain[:1]]
    ranks = cut.tensor * cut.attention_data
    for checkpoint, modes in ways:
        # Attention at eight bits is tabulated for few models; that at sixteen, which engines fall back to, for most.
        for attention in ((), (("fmha_quant_mode", "bfloat16"),)):
            yield Question(
                checkpoint=checkpoint,
                system=system,
                backend=subject.engine.name,
                tensor=cut.tensor,
                pipeline=cut.pipeline,
                attention_data=cut.attention_data,
                expert=cut.expert if subject.model.experts is not None else 1,
                expert_slices=ranks // cut.expert if subject.model.experts is not None else 1,
                modes=(*modes, ("kvcache_quant_mode", cache), *attention),
                longest=subject.model.context_length or 131072,
            )


def _ratios_of(worker: Worker, table: Table) -> LanguageRatios:
    """A table as ratios to the model without speculative decoding, which the table has not either."""
    plain = replace(worker, source=None, engine=replace(worker.engine, speculative=None))
    data = worker.cut.attention_data
    iterations = [
        Iteration(
            batch=batch * data,
            context=context,
            ratio=iteration_ratio(plain, batch=batch * data, context=context, seconds=seconds),
        )
        for batch, context, seconds in table.iterations
    ]
    prompts = [
        Sized(size=new, ratio=prompt_ratio(plain, new=new, cached=0.0, prompts=float(data), seconds=seconds))
        for new, seconds in table.prompts
    ]
    return language_ratios(plain, iterations, prompts, strict=False)
