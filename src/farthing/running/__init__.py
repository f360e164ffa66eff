"""How a study goes: its loop, what it suggests and when it stops, ask and tell, display and trackers."""
