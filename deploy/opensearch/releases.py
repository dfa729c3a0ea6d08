"""The releases of OpenSearch that can be started here, and what each of them needs."""

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


class SetupError(Exception):
    """A server cannot be installed or started; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Release:
    major: str
    number: str
    java: range
    """The Java versions it runs on."""
    best_java: Callable[[list[int]], int]
    """Chooses among suitable versions: the one it was built for, or the fastest with vectors."""
    install: str
    suffix: str
    """The end of its modules' class names."""
    port: int
    """The default port of `make opensearch`."""
    cluster_port: int

    @property
    def name(self) -> str:
        """The name in ids of tests."""
        return f"opensearch-{self.major}"

    @property
    def variable(self) -> str:
        """The environment variable with its address, for tests."""
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
