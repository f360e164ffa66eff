"""A figure that a notebook shows by itself."""

from io import BytesIO

from matplotlib.figure import Figure


class Picture(Figure):
    """As matplotlib's own, which a fresh kernel shows as text until `%matplotlib inline` has set it up."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", bbox_inches="tight")
        return file.getvalue()
