"""Work side by side: in this process, in processes of this machine, or wherever an executor sends it."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

Progress = Callable[[int, int], None]
_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


@contextmanager
def executor_of(workers: int, executor: Executor | None) -> Iterator[Executor | None]:
    """The executor given, or so many spawned processes; None for one worker, which is this process."""
    if executor is not None or workers <= 1:
        yield executor
        return
    own = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    try:
        yield own
    finally:
        own.shutdown(wait=True, cancel_futures=True)


def usual_workers(threads: int) -> int:
    """Processes that keep this machine's cores busy when each solves with so many threads."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // threads)


def as_they_come(
    executor: Executor | None,
    work: Callable[[_Work], _Result],
    items: Sequence[_Work],
    otherwise: Callable[[_Work, Exception], _Result],
) -> Iterator[tuple[int, _Result]]:
    """Results with their positions; ``otherwise`` gives those of work whose process came to an end."""
    if executor is None:
        yield from ((i, work(item)) for i, item in enumerate(items))
        return
    futures = {executor.submit(work, item): i for i, item in enumerate(items)}
    for future in as_completed(futures):
        i = futures[future]
        try:
            result = future.result()
        except Exception as error:
            result = otherwise(items[i], error)
        yield i, result


def in_order(
    executor: Executor | None, work: Callable[[_Work], _Result], items: Sequence[_Work], progress: Progress | None
) -> list[_Result]:
    """Results in the order of the work; the first fault ends all of it."""

    def fault(_: _Work, error: Exception) -> _Result:
        raise error

    results: dict[int, _Result] = {}
    for i, result in as_they_come(executor, work, items, fault):
        results[i] = result
        if progress is not None:
            progress(len(results), len(items))
    return [results[i] for i in range(len(items))]
