"""The cache of stages under whatever may happen to it: what it serves is what was put there, and it keeps its limit."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from farthing.caching import plain_files
from farthing.caching.stage_cache import CacheKey, StageCache

LIMIT = 2000
STAGES = st.integers(0, 2)
OUTPUTS = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(max_size=600),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


class AnyCache(RuleBasedStateMachine):
    """Puts, loads, damages, evicts and changes versions in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name) / "stages"
        self.cache = StageCache(self.folder, limit=LIMIT)
        self.versions = [1, 1]
        self.put_there: dict[str, object] = {}
        self.is_shrunk = True

    def teardown(self) -> None:
        self.place.cleanup()

    def lineage(self, first: int, second: int | None) -> list[CacheKey]:
        names = [("one", str(self.versions[0])), ("two", str(self.versions[1]))]
        params = [f"{first}", f"{first}-{second}"]
        return [CacheKey("source", tuple(names[: n + 1]), params[n]) for n in range(1 if second is None else 2)]

    def load(self, folder: Path) -> object:
        return plain_files.load(folder, scratch=Path(self.place.name) / "scratch")

    @rule(first=STAGES, second=st.none() | STAGES, output=OUTPUTS, seconds=st.floats(0, 100))
    def put(self, first: int, second: int | None, output: object, seconds: float) -> None:
        lineage = self.lineage(first, second)
        with self.cache.computing(lineage[-1]):
            if self.cache.get_held(lineage[-1], self.load) is None:
                self.cache.put(lineage, output, seconds=[seconds] * len(lineage), save=plain_files.save)
                self.put_there[lineage[-1].key] = output
                self.is_shrunk = False

    @rule(first=STAGES, second=st.none() | STAGES)
    def get(self, first: int, second: int | None) -> None:
        address = self.lineage(first, second)[-1]
        kept = self.cache.get(address, self.load)
        if kept is not None:
            assert kept.output == self.put_there[address.key]
            assert type(kept.output) is type(self.put_there[address.key])

    @rule(data=st.data())
    def damage(self, data: st.DataObject) -> None:
        files = sorted(path for path in self.folder.glob("*/**/*") if path.is_file())
        if files:
            path = data.draw(st.sampled_from(files))
            content = bytearray(path.read_bytes())
            place = data.draw(st.integers(0, len(content)))
            if place == len(content):
                path.unlink()
            else:
                content[place] ^= 1 << data.draw(st.integers(0, 7))
                path.write_bytes(bytes(content))

    @rule(first=STAGES, second=st.none() | STAGES)
    def leave_half_an_entry(self, first: int, second: int | None) -> None:
        """As a process does that is killed while it writes or removes one."""
        for ending in ("staging", "deleted"):
            half = self.folder / f"{self.lineage(first, second)[-1].key}.{ending}"
            half.mkdir(parents=True, exist_ok=True)
            (half / "half").write_text("half")

    @rule(stage=st.integers(0, 1))
    def change_a_version(self, stage: int) -> None:
        self.versions[stage] += 1

    @rule()
    def shrink(self) -> None:
        self.cache.shrink()
        self.is_shrunk = True

    @rule()
    def tidy(self) -> None:
        self.cache.tidy()
        endings = {path.suffix for path in self.folder.glob("*")}
        assert not endings & {".staging", ".deleted", ".lock"}

    @invariant()
    def the_limit_is_kept(self) -> None:
        if self.is_shrunk:
            readable = [path.parent for path in self.folder.glob("*/entry.json") if "." not in path.parent.name]
            outputs = [self.cache.get(self._address_of(path.name), self.load) for path in readable]
            sizes = [
                sum(file.stat().st_size for file in (path / "output").rglob("*"))
                for path, output in zip(readable, outputs, strict=True)
                if output is not None
            ]
            assert sum(sizes) <= LIMIT

    def _address_of(self, key: str) -> CacheKey:
        address = CacheKey("source", (), "")
        vars(address)["key"] = key
        return address


TestAnyCache = AnyCache.TestCase
TestAnyCache.settings = settings(max_examples=25, stateful_step_count=25)
