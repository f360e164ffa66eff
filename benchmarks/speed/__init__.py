"""Measures the cost of Farthing's own work, in CPU time and in ratios to peers. Each module is a benchmark."""
