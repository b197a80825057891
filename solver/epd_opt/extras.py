"""Optional packages, with a helpful word where one is absent."""

from __future__ import annotations

import importlib
from typing import Any

from epd_opt.errors import UsageError


def _need(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(f"this needs {module}; install it with: pip install 'epd-opt[{extra}]'") from None


def pandas() -> Any:
    """The pandas package.

    Raises
    ------
    UsageError
        It is not installed.
    """
    return _need("pandas", "plot")


def pyplot() -> Any:
    """matplotlib.pyplot.

    Raises
    ------
    UsageError
        It is not installed.
    """
    return _need("matplotlib.pyplot", "plot")


def openpyxl() -> Any:
    """The openpyxl package.

    Raises
    ------
    UsageError
        It is not installed.
    """
    return _need("openpyxl", "xlsx")
