"""Measurements beside their baselines, in one run; only the ratios mean anything."""
