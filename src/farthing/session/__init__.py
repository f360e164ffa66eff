"""Whose a study is: its record in a storage, its leases, prices, strategy and files, as one program holds them."""
