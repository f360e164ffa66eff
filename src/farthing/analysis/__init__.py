"""The findings of a study, as plain data: pure functions of its history, which terminals, pictures and pages render."""
