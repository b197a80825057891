"""The discrete-event twin of a planned fleet: the judge of every plan."""
