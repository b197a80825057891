"""Coefficients fitted to measured serving runs."""
