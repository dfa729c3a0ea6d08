"""Which releases of OpenSearch can be started here, and what each of them needs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "opensearch"
MODULES = (
    "analysis.common.CommonAnalysis",
    "index.mapper.MapperExtras",
    "index.reindex.Reindex",
    "painless.Painless",
    "script.mustache.Mustache",
    "transport.Netty4",
)


class Refused(Exception):
    """What a person reads: what happened, and what to do next."""


@dataclass(frozen=True, kw_only=True)
class Release:
    major: str
    number: str
    java: range
    """The versions it runs on."""
    best_java: Callable[[list[int]], int]
    """Of those that fit: the one it was made for, or the one that is fastest with vectors."""
    install: str
    suffix: str
    """What the names of its modules' classes end with."""
    port: int
    """Where `make opensearch` puts it."""
    cluster_port: int

    @property
    def name(self) -> str:
        """What tests call it by."""
        return f"opensearch-{self.major}"

    @property
    def variable(self) -> str:
        """In which tests look for its address."""
        return f"QUARRY_TEST_OPENSEARCH_{self.major}"

    @property
    def pom(self) -> Path:
        return HERE / f"pom-{self.major}.xml"

    @property
    def plugins(self) -> list[str]:
        modules = [f"org.opensearch.{module}{self.suffix}" for module in MODULES]
        return [*modules, "org.opensearch.knn.plugin.KNNPlugin"]

    def __str__(self) -> str:
        return f"OpenSearch {self.number}"


OLDER = Release(
    major="2",
    number="2.19.1",
    java=range(17, 24),
    best_java=min,
    install="Java 17 to 23 (on Debian: apt-get install default-jdk-headless)",
    suffix="Plugin",
    port=9219,
    cluster_port=9251,
)
NEWER = Release(
    major="3",
    number="3.5.0",
    java=range(21, 1000),
    best_java=max,
    install="Java 21 or newer (on Debian 13: apt-get install default-jdk-headless)",
    suffix="ModulePlugin",
    port=9235,
    cluster_port=9261,
)
RELEASES = {release.major: release for release in (OLDER, NEWER)}
