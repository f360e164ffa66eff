"""The pages of all measurements, docs/benchmarks, and their figures, made from the committed records alone."""
