"""Metrics of one process for Prometheus: seconds by stage, outcomes, process figures and build info."""

import platform

from prometheus_client import CollectorRegistry, Counter, Info, ProcessCollector, start_http_server

from backend.sync.run_steps import FETCH, STAGES, count_outcomes
from backend.version import read_version
from connectors.errors import NotConfiguredError
from indexing.ingestion.progress import RunCounters


class StageMetrics:
    """Implements `backend.sync.run_steps.Measure`. What nothing came of yet is zero."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._seconds = Counter(
            "quarry_stage_seconds",
            "Seconds spent in each stage: fetch (waiting for sources), cut, embed, write.",
            ["stage"],
            registry=self.registry,
        )
        self._outcomes = Counter(
            "quarry_indexed",
            "What came of batches: documents, chunks, embedded, unchanged, deleted, unreadable and so on.",
            ["outcome"],
            registry=self.registry,
        )
        for stage in (FETCH, *STAGES.values()):
            self._seconds.labels(stage)
        for outcome in count_outcomes(RunCounters()):
            self._outcomes.labels(outcome)

    def add_seconds(self, stage: str, seconds: float) -> None:
        self._seconds.labels(stage).inc(max(seconds, 0.0))

    def add_outcome(self, outcome: str, count: int) -> None:
        self._outcomes.labels(outcome).inc(max(count, 0))


def register_process_metrics(registry: CollectorRegistry) -> None:
    """Add memory, processor time and open files of this process, and `quarry_build_info`."""
    ProcessCollector(registry=registry)
    register_build_info(registry)


def register_build_info(registry: CollectorRegistry) -> None:
    """Add `quarry_build_info`, a gauge that is always 1 and names the versions in its labels."""
    info = Info("quarry_build", "Versions of Quarry and of Python.", registry=registry)
    info.info({"version": read_version(), "python": platform.python_version()})


def serve_metrics(host: str, port: int, registry: CollectorRegistry) -> None:
    """Serve the metrics over HTTP for as long as the process lives.

    Raises:
        NotConfiguredError: the address cannot be used, such as a port that is in use.
    """
    try:
        start_http_server(port, host, registry)
    except OSError as error:
        raise NotConfiguredError(
            f"Metrics cannot be served on {host}:{port}: {error.strerror}."
            " Choose another --metrics-port or --metrics-host."
        ) from error
