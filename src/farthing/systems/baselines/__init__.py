"""What the four methods are measured against, and what a study starts with."""
