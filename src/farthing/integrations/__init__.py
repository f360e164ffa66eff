"""Bridges to other libraries: one file for each, behind the extra of the same name."""
