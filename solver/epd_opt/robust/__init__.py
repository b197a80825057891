"""One fleet for several scenarios: bought once, run and routed in each as suits it best."""

from epd_opt.robust.planning import plan_for_scenarios

__all__ = ["plan_for_scenarios"]
