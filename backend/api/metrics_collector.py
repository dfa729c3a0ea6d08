"""Metrics for Prometheus. Those of sources and runs are read from the database at each scrape, and so cover
the workers of all processes; those of requests are of this server alone, added up over its processes."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import get_args

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from backend.api.request_pools import PoolName
from backend.api.server_processes import ServerProcesses
from backend.api.warmup import CurrentContainer, Warmup
from backend.store.metrics_queries import Figures, MetricsReader
from backend.store.sync.runs import RunState
from backend.store.web_cache import CacheKind
from backend.sync.document_set_updates import MAINTENANCE
from backend.sync.due_work import FETCH_KINDS, LIGHT_KINDS
from backend.sync.prometheus_metrics import (
    StageMetrics,
    register_build_info,
    register_process_metrics,
)
from backend.sync.run_steps import count_outcomes
from backend.sync.wakeup_messages import QUEUES
from backend.sync.worker_heartbeat import SERVE
from backend.web_search.session_cache import Outcome
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.ingestion.progress import RunCounters

_KINDS = FETCH_KINDS | LIGHT_KINDS | MAINTENANCE
"""Of runs that begin today; a database may hold runs of others."""
_SEARCHES = {"/api/search", "/results"}
_ANSWERS = {"/api/ask"}
_SEARCH_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ANSWER_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 180)


class Metrics:
    """The metrics of one server. Requests are labelled by route, never by path, to bound the number of series.

    Args:
        processes: of this server, where it has several: what each has counted lies in the folder that they share, by
            the multiprocess mode of `prometheus_client`.
    """

    def __init__(
        self, current: CurrentContainer, warmup: Warmup, processes: ServerProcesses | None = None
    ) -> None:
        self._processes = processes
        self._looked_up = CollectorRegistry()
        self._looked_up.register(_DatabaseCollector(current, warmup))
        if processes is None:
            register_process_metrics(self._looked_up)
        else:
            register_build_info(self._looked_up)
            self._looked_up.register(_ProcessesCollector(processes))
        self._counted = CollectorRegistry()
        self.stages = StageMetrics(self._counted)
        self._requests = Counter(
            "quarry_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self._counted,
        )
        self._searches = Histogram(
            "quarry_search_seconds",
            "Seconds that searches took.",
            buckets=_SEARCH_BUCKETS,
            registry=self._counted,
        )
        self._waited = Histogram(
            "quarry_pool_wait_seconds",
            "Seconds that requests waited for their turn, by pool.",
            ["pool"],
            buckets=_SEARCH_BUCKETS,
            registry=self._counted,
        )
        self._refused = Counter(
            "quarry_pool_refused",
            "Requests that were refused because too many waited, by pool.",
            ["pool"],
            registry=self._counted,
        )
        self._web_cache = Counter(
            "quarry_web_cache_lookups",
            "Searches of the web and pages that were looked for in the cache of their session, by outcome.",
            ["kind", "outcome"],
            registry=self._counted,
        )
        self._answers = Histogram(
            "quarry_answer_seconds",
            "Seconds that answers took, to their last word.",
            buckets=_ANSWER_BUCKETS,
            registry=self._counted,
        )
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Report zero for what did not happen yet, which a rule tells from a server that is not scraped.

        Not so requests, whose routes and statuses are hundreds of series.
        """
        for pool in get_args(PoolName):
            self._waited.labels(pool)
            self._refused.labels(pool)
        for labels in product(get_args(CacheKind), get_args(Outcome)):
            self._web_cache.labels(*labels)

    def observe_request(
        self, method: str, route: str | None, status: int | None, seconds: float
    ) -> None:
        """Count a finished request; without a status its client had disconnected."""
        self._requests.labels(method if route else "", route or "", str(status or "")).inc()
        if status != 200:
            return
        if route in _SEARCHES:
            self._searches.observe(seconds)
        elif route in _ANSWERS:
            self._answers.observe(seconds)

    def waited(self, pool: str, seconds: float) -> None:
        """Record how long a request waited; see `backend.api.request_pools.PoolObserver`."""
        self._waited.labels(pool).observe(seconds)

    def refused(self, pool: str) -> None:
        self._refused.labels(pool).inc()

    def looked_up_in_web_cache(self, kind: CacheKind, outcome: Outcome) -> None:
        """Count a lookup; see `backend.web_search.session_cache.CacheObserver`."""
        self._web_cache.labels(kind, outcome).inc()

    def render(self) -> bytes:
        return generate_latest(self._looked_up) + generate_latest(self._summed())

    def _summed(self) -> CollectorRegistry:
        """Return what the processes of the server have counted together."""
        if self._processes is None:
            return self._counted
        summed = CollectorRegistry()
        MultiProcessCollector(summed, str(self._processes.folder))  # type: ignore[no-untyped-call]
        return summed


class _ProcessesCollector(Collector):
    """Memory, processor time and open files of each process of the server, labelled by its name."""

    def __init__(self, processes: ServerProcesses) -> None:
        self._processes = processes

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for name, process in self._processes.live().items():
            for each in _process_metrics(process.number):
                family = families.setdefault(
                    each.name, Metric(each.name, each.documentation, each.type)
                )
                for sample in each.samples:
                    family.add_sample(sample.name, {"process": name}, sample.value)
        yield from families.values()


def _process_metrics(number: int) -> Iterable[Metric]:
    found: Iterable[Metric] = ProcessCollector(pid=lambda: number, registry=None).collect()
    return found


class _DatabaseCollector(Collector):
    """Reads the database at each scrape; where that fails, `quarry_database_up` is 0 and the other metrics remain."""

    def __init__(self, current: CurrentContainer, warmup: Warmup) -> None:
        self._current = current
        self._warmup = warmup
        self._lock = threading.Lock()
        self._metrics_reader: MetricsReader | None = None

    def describe(self) -> list[Metric]:
        """Return nothing, so that the database is not read before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        figures = self._figures()
        answers = 0.0 if figures is None else 1.0
        yield GaugeMetricFamily("quarry_database_up", "Whether the database answers.", answers)
        if figures is not None:
            yield from _metric_families(figures)

    def _figures(self) -> Figures | None:
        if not self._warmup.is_made("database"):
            return None
        try:
            with self._lock:
                if self._metrics_reader is None:
                    self._metrics_reader = MetricsReader(self._current.container.database)
            return self._metrics_reader.take()
        except (TemporarilyUnavailableError, ActionRequiredError):
            return None


def _metric_families(figures: Figures) -> Iterator[Metric]:
    states = {**dict.fromkeys(get_args(RunState), 0), **figures.sources}
    yield _gauge("quarry_sources", "Sources in each state.", "state", states)
    runs = GaugeMetricFamily("quarry_runs", "Runs by kind and state.", labels=["kind", "state"])
    states_of_runs = {**dict.fromkeys(product(_KINDS, get_args(RunState)), 0), **figures.runs}
    for (kind, state), count in sorted(states_of_runs.items()):
        runs.add_metric([kind, state], count)
    yield runs
    outcomes = CounterMetricFamily(
        "quarry_outcomes", "What came of all runs, by outcome.", labels=["outcome"]
    )
    all_outcomes = {**count_outcomes(RunCounters()), **figures.outcomes}
    for outcome, count in sorted(all_outcomes.items()):
        outcomes.add_metric([outcome], count)
    yield outcomes
    since = GaugeMetricFamily(
        "quarry_last_success_timestamp_seconds",
        "Time of the last successful run of this kind; 0 if there was none.",
        labels=["source", "kind"],
    )
    for (source, kind), seconds in sorted(figures.successes.items()):
        since.add_metric([source, kind], seconds)
    yield since
    yield _gauge(
        "quarry_open_batches",
        "Batches that were read and are not indexed yet.",
        "source",
        figures.open_batches,
    )
    yield GaugeMetricFamily(
        "quarry_oldest_open_batch_timestamp_seconds",
        "Time at which the oldest of them was read; 0 if there is none.",
        figures.oldest_batch,
    )
    yield _gauge("quarry_documents", "Documents that are held.", "source", figures.documents)
    yield _gauge("quarry_failed_documents", "Documents that failed.", "source", figures.failures)
    workers = {**dict.fromkeys((*QUEUES, "beat", SERVE), 0), **figures.workers}
    yield _gauge("quarry_workers", "Live worker processes.", "queue", workers)


def _gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help_text, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family
