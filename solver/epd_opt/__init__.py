"""Plans the fleets that serve multimodal language models: which devices, how many, cut how, serving whom."""

from __future__ import annotations

from epd_opt._version import __version__
from epd_opt.errors import EpdError, InvalidInput, UsageError
from epd_opt.instance import Instance
from epd_opt.pipeline import solve
from epd_opt.plan import Plan
from epd_opt.reading import read
from epd_opt.sensitivity import BreakEven, Marginal, Study, Tornado, break_even, marginal, sensitivity, tolerance, tornado
from epd_opt.simulate import simulate
from epd_opt.verify import VerificationError, verify

__all__ = [
    "BreakEven",
    "EpdError",
    "Instance",
    "InvalidInput",
    "Marginal",
    "Plan",
    "Study",
    "Tornado",
    "UsageError",
    "VerificationError",
    "__version__",
    "break_even",
    "marginal",
    "read",
    "sensitivity",
    "simulate",
    "solve",
    "tolerance",
    "tornado",
    "verify",
]
