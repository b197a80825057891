"""The mixed-integer programme: sets, variables, objective, and one function per constraint family."""

from epd_opt.formulation.build import Formulation, Question, build, build_limitless

__all__ = ["Formulation", "Question", "build", "build_limitless"]
