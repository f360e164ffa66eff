"""The knowledge before a study begins: earlier studies, and the starts that cover them."""
