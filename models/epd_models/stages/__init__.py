"""Seconds of each stage on one worker: one file per stage."""
