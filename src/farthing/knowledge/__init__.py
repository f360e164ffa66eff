"""What is known before a study begins: earlier studies, and the starts that cover them."""
