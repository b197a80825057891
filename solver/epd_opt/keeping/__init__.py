"""A fleet that is kept: whether it serves another instance, what that costs, and what breaks where it does not."""

from epd_opt.keeping.breaks import breaks
from epd_opt.keeping.fleet import Fleet, Kept, kept

__all__ = ["Fleet", "Kept", "breaks", "kept"]
