"""One declaration of an argument: the field's rule gives the check, the message, JSON, TOML types and the docs."""

from farthing.fields.declaration import Declaration, number, positive, ruled, share, whole
from farthing.fields.rules import Flag, Named, Number, OneOf, Part, Rule, Several, SquareMatrix, Text, Whole

__all__ = [
    "Declaration",
    "Flag",
    "Named",
    "Number",
    "OneOf",
    "Part",
    "Rule",
    "Several",
    "SquareMatrix",
    "Text",
    "Whole",
    "number",
    "positive",
    "ruled",
    "share",
    "whole",
]
