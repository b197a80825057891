"""From an instance as written to values the models take: cards looked up, units converted, defaults made explicit."""

from epd_opt.resolve.resolved import Assumption, Resolved
from epd_opt.resolve.whole import nothing_asked, resolve

__all__ = ["Assumption", "Resolved", "nothing_asked", "resolve"]
