"""What remains of a context where a source of times refuses to go beyond its measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from epd_models.candidate import Rejection, Stage
from epd_models.entry import Entry
from epd_models.parallelism import Parallelism
from epd_models.placement import parts
from epd_models.placement.context import Context, NotBuildable
from epd_models.placement.origins import images_beyond, prompts_beyond
from epd_models.ratios import LanguageRatios
from epd_models.request import RequestLoad
from epd_models.source import Uncovered


def measured_only(
    context: Context, entry: Entry, cut: Parallelism, stages: tuple[Stage, ...], rejections: list[Rejection]
) -> Context:
    """The context without the classes that ask a strict source for more than it measured, and with batches of at most what
    it measured; the same context where the source is not strict.

    Parameters
    ----------
    rejections : list of Rejection
        Classes left out are added to it.

    Raises
    ------
    NotBuildable
        The source has no times of a stage at these degrees, and the model may not stand in.
    """
    if entry.source is None:
        return context
    vision = any(load.has_vision for load in context.loads)
    alone = parts.encoder(context, entry)
    try:
        worker = alone if stages == ("encode",) else parts.language_worker(context, entry, cut)
    except NotBuildable:
        return context
    try:
        for stage in stages:
            if stage != "encode" or vision:
                entry.source.check(alone if stage == "encode" else worker, stage)
    except Uncovered as error:
        text = f"{entry.name} {cut.label}: {error}"
        raise NotBuildable(Rejection(limit="performance", device=entry.name, pool=cut.label, text=text)) from None
    kept = []
    for load in context.loads:
        beyond = list(_beyond(context, entry, worker.ratios, stages, load))
        if beyond:
            text = f"{entry.name} {cut.label}: its strict profile does not reach {'; '.join(beyond)}"
            rejections.append(
                Rejection(limit="performance", device=entry.name, pool=cut.label, request_class=load.name, text=text)
            )
        else:
            kept.append(load)
    engine, ratios = context.engine, worker.ratios
    if "decode" in stages and ratios.strict and ratios.decode is not None:
        most = math.floor(ratios.decode.batches[1] * cut.pipeline / cut.attention_data)
        engine = replace(engine, max_sequences=max(1, min(engine.max_sequences, most)))
    return replace(context, loads=tuple(kept), engine=engine)


def _beyond(
    context: Context, entry: Entry, ratios: LanguageRatios, stages: tuple[Stage, ...], load: RequestLoad
) -> Iterator[str]:
    if "encode" in stages and parts.image_ratios(context, entry).strict:
        yield from images_beyond(context, entry, [load])
    if "prefill" in stages and ratios.strict and ratios.prefill is not None:
        yield from prompts_beyond(ratios.prefill, [load])
    if "decode" in stages and ratios.strict and ratios.decode is not None and load.averaging_steps > 0:
        low, high = ratios.decode.ends
        contexts = load.mean_prompt, load.mean_prompt + load.request.output_tokens.mean
        if not all(ratios.decode.reaches(context) for context in contexts):
            yield f"contexts of {contexts[0]:.0f} to {contexts[1]:.0f} tokens, {low:.0f} to {high:.0f} were measured"
