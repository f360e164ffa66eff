"""The page of all measurements, docs/benchmarks.md, and its figures, made from the committed records alone."""
