"""Keeping what stages computed: the cache, the identity of code and data, and plain data in plain files."""
