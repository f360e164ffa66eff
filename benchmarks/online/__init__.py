"""Bandits in rounds: what online strategies lose, and what they pay for, on functions that change under them."""
