"""A storage and an executor at whose calls something happens: a Ctrl-C, an error."""

from collections.abc import Callable
from typing import Any


class Steps:
    """Counts the calls of what it watches and acts at one of them: just before, or with `after` also just after it."""

    def __init__(self, act: Callable[[], None], *, at: int, after: bool) -> None:
        self.count = 0
        self.after = after
        self._act = act
        self._at = at

    @property
    def has_acted(self) -> bool:
        return self.count > self._at

    def watching(self, thing: Any) -> Any:
        return _Watched(thing, self)

    def step(self) -> None:
        self.count += 1
        if self.count == self._at + 1:
            self._act()


class _Watched:
    def __init__(self, thing: Any, steps: Steps) -> None:
        self._thing = thing
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if not callable(found):
            return found

        def watched(*arguments: Any, **named: Any) -> Any:
            self._steps.step()
            result = found(*arguments, **named)
            if self._steps.after:
                self._steps.step()
            return result

        return watched
