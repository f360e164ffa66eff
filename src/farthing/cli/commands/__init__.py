"""The commands: each declares its options here and imports what does the work when it is called."""
