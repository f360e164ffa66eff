"""Acquisition functions over arrays, and their maximiser. Losses are minimised: less is better."""
