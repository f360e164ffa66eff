"""Deciding about pipelines: which stages to compute anew, and which to keep."""
