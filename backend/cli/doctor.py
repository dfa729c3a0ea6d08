"""`quarry doctor`: check what is set up and what works, and say how to fix the rest."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import typer
from rich.console import Console
from rich.text import Text

from backend.access.openid.provider import Provider
from backend.chat.llm.client import make_complete
from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.composition.chat import ChatService
from backend.composition.index import EmbeddingModel, IndexEngine
from backend.container import Container
from backend.research.calculations.sandbox import CalculationSandbox, FailedCalculation
from backend.schemas.base import dump_all
from backend.schemas.system import DoctorCheck
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.settings import Settings, variable
from backend.store.database import Database
from backend.store.documents import documents
from backend.store.sync import failures, sources, workers
from backend.sync import wakeup_messages
from backend.worker.broker import Broker
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.language_support import LanguageSupport
from indexing.embedding.model_loading import describe_model
from indexing.opensearch.cluster_health import MIN_VERSION, ClusterHealth
from indexing.runtime.deadline import Deadline
from indexing.text.normalization import pluralize

UNDERSTOOD = 0.5
ANSWER_SECONDS = 20.0
"""How long the language model may take for one word."""
CALCULATION_SECONDS = 20.0
NEARLY_FULL = 0.85
"""The share of a disk at which a cluster with default settings begins to move shards away."""


def doctor(as_json: Json = False) -> None:
    """Check what is set up and what works, and say how to fix the rest."""
    with command_line.cli_errors(as_json):
        checks = run_checks(command_line.open_home())
        if as_json:
            command_line.print_json(dump_all(checks))
        else:
            print_checks(command_line.console(), checks)
    if any(check.state == "failed" for check in checks):
        raise typer.Exit(command_line.FAILED)


def run_checks(container: Container) -> Sequence[DoctorCheck]:
    """Run all checks, each after those that it depends on."""
    engine, settings = container.engine, container.settings
    checks: list[tuple[str, Callable[[], DoctorCheck]]] = [
        ("settings", lambda: _check_settings(container)),
        ("database", lambda: _check_database(container.database)),
        ("model", lambda: _check_model(container.embedding)),
        ("languages", lambda: _check_languages(container.embedding.language_support)),
        ("opensearch", lambda: check_cluster(engine.cluster_health())),
        ("index", lambda: check_index(container.database, engine)),
        ("language model", lambda: _check_language_model(container.chat)),
        ("workers", lambda: _check_workers(settings, container.database)),
        ("identity provider", lambda: check_provider(container.sign_in.openid_provider)),
        ("calculations", lambda: check_calculations(container.calculation_sandbox)),
    ]
    unused = {
        *(() if engine.is_opensearch else ("opensearch",)),
        *(() if settings.broker_url else ("workers",)),
    }
    return [_run_check(name, check) for name, check in checks if name not in unused]


def check_cluster(health: ClusterHealth) -> DoctorCheck:
    """Check an OpenSearch cluster that answers."""
    failed, warnings = list(_cluster_failures(health)), list(_cluster_warnings(health))
    return DoctorCheck(
        name="opensearch",
        state="failed" if failed else "warning" if warnings else "ok",
        detail=_describe_cluster(health),
        advice="; ".join(failed + warnings) or None,
    )


def check_provider(provider: Provider | None) -> DoctorCheck:
    """Check the identity provider.

    Raises:
        NotConfiguredError, TemporarilyUnavailableError: it is none, or does not respond.
    """
    name = "identity provider"
    if provider is None:
        return DoctorCheck(name=name, state="off", detail="none is set: people sign in by password")
    provider.read_metadata()
    domains = ", ".join(sorted(provider.settings.domains))
    advice = f"to let people in who have no account, set {variable('oidc_domains')}"
    return DoctorCheck(
        name=name,
        state="ok" if domains else "warning",
        detail=f"{provider.settings.issuer} responds; it verifies addresses of {domains or 'no domain'}",
        advice=None if domains else advice,
    )


def check_calculations(sandbox: CalculationSandbox) -> DoctorCheck:
    """Run a calculation where the sandbox has been built.

    Raises:
        NotConfiguredError: it cannot be built.
    """
    name = "calculations"
    if obstacle := sandbox.find_obstacle():
        return DoctorCheck(name=name, state="off", detail="not available", advice=obstacle)
    if not sandbox.is_prepared:
        detail = "their sandbox is built when the first one is asked for, in about half a minute"
        return DoctorCheck(name=name, state="ok", detail=detail)
    outcome = sandbox.run_calculation("6 * 7", Deadline.after(CALCULATION_SECONDS))
    if isinstance(outcome, FailedCalculation):
        return DoctorCheck(name=name, state="failed", detail=outcome.reason)
    return DoctorCheck(name=name, state="ok", detail="their sandbox runs code")


def _run_check(name: str, check: Callable[[], DoctorCheck]) -> DoctorCheck:
    try:
        return check()
    except (ActionRequiredError, TemporarilyUnavailableError) as error:
        return DoctorCheck(name=name, state="failed", detail=str(error))


def _check_settings(container: Container) -> DoctorCheck:
    _ = container.sources.limits
    changed = sorted(variable(field) for field in container.settings.model_fields_set)
    return DoctorCheck(
        name="settings",
        state="ok",
        detail=f"home {container.home}; set: {', '.join(changed) or 'none, all defaults'}",
    )


def _check_database(database: Database) -> DoctorCheck:
    counts = {
        "source": len(sources.list_sources(database)),
        "document": sum(documents.count_by_source(database).values()),
        "failure": sum(failures.count_by_source(database).values()),
    }
    advice = None
    if counts["failure"]:
        advice = "to list them: quarry failures"
    elif not counts["source"]:
        advice = "add a source: quarry add folder PATH"
    return DoctorCheck(
        name="database",
        state="warning" if advice else "ok",
        detail=", ".join(pluralize(count, noun) for noun, count in counts.items()),
        advice=advice,
    )


def _check_model(embedding: EmbeddingModel) -> DoctorCheck:
    if url := embedding.settings.embedding_url:
        identity = embedding.embedder.identity
        detail = f"{identity.model} at {url}, {identity.dimension} dimensions"
        return DoctorCheck(name="model", state="ok", detail=detail)
    model = embedding.name
    state = describe_model(model, embedding.folder)
    if state.record is None:
        return DoctorCheck(
            name="model",
            state="warning",
            detail=f"{model} in {state.source.folder}, not prepared yet",
            advice=state.advice,
        )
    converted = state.record.runtime == "openvino"
    return DoctorCheck(
        name="model",
        state="ok" if converted else "warning",
        detail=f"{model}, run by {state.record.runtime},"
        f" {state.record.identity.precision}, {state.record.identity.dimension} dimensions",
        advice=None
        if converted
        else "OpenVINO could not convert this model; sentence-transformers runs it, slower and with"
        " more memory",
    )


def _check_languages(support: LanguageSupport) -> DoctorCheck:
    shares = {name: support.language(name) for name in support.measured}
    known = [f"{name} {share:.2f}" for name, share in shares.items() if share >= UNDERSTOOD]
    poor = [f"{name} {share:.2f}" for name, share in shares.items() if share < UNDERSTOOD]
    return DoctorCheck(
        name="languages",
        state="warning" if poor else "ok",
        detail=f"understood: {', '.join(known) or 'none'}; poorly or not: {', '.join(poor) or 'none'}",
        advice="texts in these languages are found by keywords only; to find them by meaning, change to a"
        " multilingual model: quarry reindex --model MODEL"
        if poor
        else None,
    )


def check_index(database: Database, engine: IndexEngine) -> DoctorCheck:
    stored = sum(documents.count_by_source(database).values())
    indexed = chunks = 0
    for document in engine.writer.scan():
        indexed += 1
        chunks += document.chunks
    advice = None
    if (building := engine.versions.building()) is not None:
        advice = (
            f"an index for {building.model_name} is unfinished: quarry reindex continues it,"
            " quarry reindex --abandon removes it"
        )
    elif indexed != stored:
        advice = (
            f"the database has {pluralize(stored, 'document')}; to update the index: quarry sync"
        )
    elif not engine.versions.has_current_words():
        advice = (
            "its words were made by an earlier version of Quarry, which stemmed English alone; to make them again"
            " without embedding anything: quarry reindex --words"
        )
    return DoctorCheck(
        name="index",
        state="warning" if advice else "ok",
        detail=f"{pluralize(indexed, 'document')}, {pluralize(chunks, 'chunk')} in {engine.location}",
        advice=advice,
    )


def _check_language_model(chat: ChatService) -> DoctorCheck:
    model, name = chat.model, "language model"
    if model is None:
        return DoctorCheck(
            name=name,
            state="off",
            detail="not set; questions are answered with the passages that come closest",
            advice="for written answers, add a language model: quarry models add",
        )
    try:
        make_complete(model)(
            [ChatMessage("user", "Answer with the word: ready")], Deadline.after(ANSWER_SECONDS)
        )
    except CompletionError as error:
        name_of_stored = model.settings.name
        advice = (
            f"to try it: quarry models test {name_of_stored}"
            if name_of_stored
            else f"until it answers, unset {variable('llm_model')} for answers without it"
        )
        detail = str(error.__cause__ or error)  # with what the server said
        return DoctorCheck(name=name, state="failed", detail=detail, advice=advice)
    detail = f"{model.settings.model} answers at {model.settings.base_url}"
    return DoctorCheck(name=name, state="ok", detail=detail)


def _check_workers(settings: Settings, database: Database) -> DoctorCheck:
    """Check that processes serve each queue.

    Raises:
        TemporarilyUnavailableError, ActionRequiredError: the broker or the database does not answer.
    """
    Broker(settings).check()
    alive = Counter(one.queue for one in workers.list_live(database))
    missing = wakeup_messages.missing_commands({*alive})
    counts = ", ".join(f"{queue} {alive[queue]}" for queue in wakeup_messages.COMMANDS)
    return DoctorCheck(
        name="workers",
        state="warning" if missing else "ok",
        detail=f"the broker answers; running processes: {counts}",
        advice=f"start {' and '.join(missing)}" if missing else None,
    )


def _describe_cluster(health: ClusterHealth) -> str:
    disks = ", ".join(
        f"{disk.node} {disk.free_bytes / 1e9:.0f} GB free ({disk.used:.0%} used)"
        for disk in health.disks
    )
    marks = ", ".join(f"{name} {value}" for name, value in health.watermarks)
    indexes = ", ".join(
        f"{index.name} ({index.status}, {index.records:,} records, {index.bytes / 1e6:,.0f} MB)"
        for index in health.indexes
    )
    return (
        f"version {health.version}, {health.status}, {health.nodes} nodes; disks: {disks};"
        f" watermarks: {marks}; indexes: {indexes or 'none yet'}"
    )


def _cluster_failures(health: ClusterHealth) -> Iterator[str]:
    if health.is_too_old:
        yield f"Quarry needs OpenSearch {'.'.join(map(str, MIN_VERSION))} or newer"
    if health.without_knn:
        yield f"install the plugin opensearch-knn on: {', '.join(health.without_knn)}"
    if health.status == "red":
        yield "a part of an index is missing; restart the nodes that have it"
    if health.blocked:
        yield (
            f"{', '.join(health.blocked)} is read-only; free space on the disks, then set"
            " index.blocks.read_only_allow_delete to null"
        )


def _cluster_warnings(health: ClusterHealth) -> Iterator[str]:
    if health.status == "yellow":
        yield (
            f"{health.unassigned_shards} copies of shards have no node; add one, or set"
            f" {variable('opensearch_replicas')}=0 for new indexes"
        )
    full = [disk.node for disk in health.disks if disk.used >= NEARLY_FULL]
    if full:
        yield f"nearly full: {', '.join(full)}; free space, or add a node"


_STATES = {"ok": "green", "warning": "yellow", "failed": "red", "off": "dim"}


def print_checks(console: Console, found: Sequence[DoctorCheck]) -> None:
    for check in found:
        console.print(
            Text.assemble((f"{check.state:>8}  ", _STATES[check.state]), (check.name, "bold")),
            to_safe_text(check.detail),
        )
        if check.advice:
            console.print(to_safe_text(f"          → {check.advice}"))
