"""The mixed-integer programme: sets, variables, objective, and one function per constraint family."""

from epd_opt.formulation.build import Formulation, Question, build, build_limitless
from epd_opt.formulation.occasions import OccasionsFormulation, build_occasions

__all__ = ["Formulation", "OccasionsFormulation", "Question", "build", "build_limitless", "build_occasions"]
