"""Changes after which an instance that nothing serves is served, each of them solved."""

from epd_opt.mending.mends import mended

__all__ = ["mended"]
