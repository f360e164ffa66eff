"""Files that survive a crash, locks that end with their process, and folders that are removed after it."""
