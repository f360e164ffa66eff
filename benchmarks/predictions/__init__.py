"""How well the cost of the next trial is predicted, on real studies that were recorded once."""
