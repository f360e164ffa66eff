"""Records tables of real trainings: hundreds of configurations a task, many trained at once. See `benchmarks/data`."""
