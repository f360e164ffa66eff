"""How each library is driven: one file a library, which is imported only when it runs."""
