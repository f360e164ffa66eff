"""The commands. Help must come at once, so they import what is heavy when they are called."""
