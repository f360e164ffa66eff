"""A page about the cost of studies: a server that reads storages, and the same page as one file."""
