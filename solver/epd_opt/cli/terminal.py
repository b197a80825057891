"""What the commands share in writing to streams: JSON as UTF-8, and a word on long work to whoever watches."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator

import click

_PATIENCE_S = 1.0


def echo_json(text: str) -> None:
    """Print one JSON document, in UTF-8 whatever the terminal speaks."""
    click.echo(text.encode("utf-8"))


def wants_color() -> bool:
    """Whether standard output is a terminal whose user has not set ``NO_COLOR``."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def width(default: int) -> int:
    """Columns to use: the terminal's, within reason."""
    return max(80, min(140, shutil.get_terminal_size((default, 40)).columns)) if sys.stdout.isatty() else default


@contextlib.contextmanager
def progress(*, quiet: bool, verbose: bool) -> Iterator[Callable[[str], None]]:
    """A function to report steps to: lines when verbose, a passing status on a terminal after a second, else nothing."""
    if verbose:
        yield lambda text: click.echo(text, err=True)
        return
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    status = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR"))).status("building candidates")
    timer = threading.Timer(_PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: status.update(text)
    finally:
        timer.cancel()
        timer.join()
        status.stop()


@contextlib.contextmanager
def bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A function to report (done, whole) to: a passing bar on a terminal after a second, else nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, whole: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, no_color=bool(os.environ.get("NO_COLOR")))
    start, shown = time.monotonic(), False
    with contextlib.ExitStack() as stack:
        drawn = Progress(console=console, transient=True)
        task = drawn.add_task(title, total=None)

        def advance(done: int, whole: int) -> None:
            nonlocal shown
            if not shown and time.monotonic() - start > _PATIENCE_S:
                stack.enter_context(drawn)
                shown = True
            drawn.update(task, completed=done, total=whole)

        yield advance
