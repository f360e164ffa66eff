"""Deciding about pipelines: which stages to compute again, and which to keep."""
