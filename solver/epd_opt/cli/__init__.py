"""The command line: parsing and printing only."""

from epd_opt.cli.main import main

__all__ = ["main"]
