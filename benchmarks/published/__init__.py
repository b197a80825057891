"""Published results beside what the models and the planner say of the same case: one file per kind of result."""
