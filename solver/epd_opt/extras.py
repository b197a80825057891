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


def dask_executor(address: str) -> Any:
    """An executor whose work a Dask scheduler hands to its workers, which need this program at the same version.

    Raises
    ------
    UsageError
        The package is not installed, or no scheduler answers at the address.
    """
    distributed = _need("distributed", "dask")
    try:
        return distributed.Client(address, timeout="10s").get_executor()
    except (OSError, ValueError) as error:
        raise UsageError(f"no Dask scheduler answers at {address}: {error}") from None
