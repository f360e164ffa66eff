"""Scripts that made the records by which rules were chosen."""
