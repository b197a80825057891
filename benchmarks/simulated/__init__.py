"""Tables of `benchmarks/simulator.py`, one a file; each yields its lines in Markdown."""
