"""Measurements and their baselines in one run. Only the ratios are meaningful."""
