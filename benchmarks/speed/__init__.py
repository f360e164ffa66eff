"""What Farthing's own work costs, in CPU time and in ratios to peers. Each module here is a benchmark by its name."""
