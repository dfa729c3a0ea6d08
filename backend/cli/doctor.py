"""What is set up, what works, and what to do about the rest."""

from collections.abc import Callable, Sequence

from backend.chat.llm.client import completion
from backend.cli import attending, cluster
from backend.container import Container
from backend.schemas.models import CheckWire
from backend.search.llm_protocol import ChatMessage, CompletionError
from backend.settings import variable
from backend.sources.status_text import pluralize
from backend.store import documents, failures, sources
from connectors.errors import ActionRequiredError, TemporarilyUnavailableError
from indexing.embedding.model_loading import describe_model
from indexing.runtime.deadline import Deadline

UNDERSTOOD = 0.5
PATIENCE = 20.0
"""Seconds for the language model to say a word."""


def examine(container: Container) -> Sequence[CheckWire]:
    """All checks, in the order in which one stands on another."""
    return [
        _checked("settings", lambda: _settings(container)),
        _checked("database", lambda: _database(container)),
        _checked("model", lambda: _model(container)),
        _checked("languages", lambda: _languages(container)),
        *(
            [_checked("opensearch", lambda: _opensearch(container))]
            if container.engine.is_opensearch
            else []
        ),
        _checked("index", lambda: _index(container)),
        _checked("language model", lambda: _language_model(container)),
        *(
            [_checked("workers", lambda: _workers(container))]
            if container.settings.broker_url
            else []
        ),
    ]


def _checked(name: str, check: Callable[[], CheckWire]) -> CheckWire:
    try:
        return check()
    except (ActionRequiredError, TemporarilyUnavailableError) as error:
        return CheckWire(name=name, state="failed", detail=str(error))


def _settings(container: Container) -> CheckWire:
    changed = sorted(variable(field) for field in container.settings.model_fields_set)
    return CheckWire(
        name="settings",
        state="ok",
        detail=f"home {container.home}; set: {', '.join(changed) or 'nothing, all by default'}",
    )


def _database(container: Container) -> CheckWire:
    held = sum(documents.counts(container.database).values())
    failed = sum(failures.counts(container.database).values())
    known = len(sources.listing(container.database))
    return CheckWire(
        name="database",
        state="warning" if failed or not known else "ok",
        detail=", ".join(
            pluralize(count, noun)
            for count, noun in ((known, "source"), (held, "document"), (failed, "failure"))
        ),
        advice=(
            "quarry failures names them"
            if failed
            else None
            if known
            else "add a source: quarry add folder PATH"
        ),
    )


def _model(container: Container) -> CheckWire:
    settings = container.settings
    if settings.embedding_url:
        identity = container.embedding.embedder.identity
        return CheckWire(
            name="model",
            state="ok",
            detail=f"{identity.model} at {settings.embedding_url}, {identity.dimension} dimensions",
        )
    model = container.embedding.name
    state = describe_model(model, container.embedding.folder)
    if state.record is None:
        return CheckWire(
            name="model",
            state="warning",
            detail=f"{model} in {state.source.folder}, not prepared yet",
            advice=state.advice,
        )
    converted = state.record.runtime == "openvino"
    return CheckWire(
        name="model",
        state="ok" if converted else "warning",
        detail=f"{model}, run by {state.record.runtime},"
        f" {state.record.identity.precision}, {state.record.identity.dimension} dimensions",
        advice=None
        if converted
        else "OpenVINO could not convert this model; sentence-transformers runs it, more slowly and"
        " with more memory",
    )


def _languages(container: Container) -> CheckWire:
    understanding = container.embedding.language_support
    shares = {name: understanding.language(name) for name in understanding.measured}
    known = [f"{name} {share:.2f}" for name, share in shares.items() if share >= UNDERSTOOD]
    poor = [f"{name} {share:.2f}" for name, share in shares.items() if share < UNDERSTOOD]
    return CheckWire(
        name="languages",
        state="warning" if poor else "ok",
        detail=f"understood: {', '.join(known) or 'none'}; poorly or not: {', '.join(poor) or 'none'}",
        advice="texts in those languages are found by their words; for meaning too, change to a"
        " multilingual model: quarry reindex --model MODEL"
        if poor
        else None,
    )


def _opensearch(container: Container) -> CheckWire:
    return cluster.described(container.engine.cluster_health())


def _workers(container: Container) -> CheckWire:
    return attending.described(container)


def _index(container: Container) -> CheckWire:
    held = sum(documents.counts(container.database).values())
    indexed = chunks = 0
    for document in container.engine.writer.scan():
        indexed += 1
        chunks += document.chunks
    advice = None
    if (building := container.engine.versions.building()) is not None:
        advice = (
            f"one for {building.model_name} is half built: quarry reindex goes on with it,"
            " quarry reindex --abandon removes it"
        )
    elif indexed != held:
        advice = f"the database holds {held} documents; quarry sync brings the index in line"
    return CheckWire(
        name="index",
        state="warning" if advice else "ok",
        detail=f"{pluralize(indexed, 'document')}, {pluralize(chunks, 'chunk')} in {container.engine.location}",
        advice=advice,
    )


def _language_model(container: Container) -> CheckWire:
    settings = container.settings
    model = container.chat.model
    if model is None:
        return CheckWire(
            name="language model",
            state="off",
            detail="none is set; answers are the best sentences of the documents",
            advice=f"to have answers written, set {variable('llm_url')}, {variable('llm_model')}"
            f" and, if the endpoint wants one, {variable('llm_key')}",
        )
    try:
        completion(model)(
            [ChatMessage("user", "Answer with the word: ready")], Deadline.after(PATIENCE)
        )
    except CompletionError as error:
        return CheckWire(
            name="language model",
            state="failed",
            detail=str(error),
            advice=f"until it answers, unset {variable('llm_model')} for answers without it",
        )
    return CheckWire(
        name="language model",
        state="ok",
        detail=f"{settings.llm_model} answers at {model.settings.base_url}",
    )
