"""The terminal side of `quarry add` and `quarry sources`: prompt for credentials and print tables."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.cli.command_line import to_safe_text
from backend.cli.source_input import SourceInput, infer_variants, prompt_secret
from backend.cli.source_options import KindOptions
from backend.schemas.run import RunResponse
from backend.schemas.source import (
    CapabilityResponse,
    DecisionResponse,
    FailureResponse,
    SourceResponse,
)
from backend.sources.service import SourceService
from backend.sources.status_text import format_counts, run_label, state_label
from backend.store.sync.runs import OPEN
from backend.store.sync.sources import Source
from connectors.registry import InvalidSourceError
from connectors.settings_form import SecretField, nest_values

_WORKS = {True: ("works", "green"), False: ("missing", "red")}
_UNSUPPORTED = ("none", "dim")


def add(service: SourceService, options: KindOptions, given: SourceInput) -> SourceResponse:
    """Add a source, and ask for its credential if needed. Raises ConflictError: there is one of this name already."""
    credential = given.credential or prompt_credential(options)
    with usage_errors(options):
        return service.add(options.kind, given.settings, credential, given.name)


def edit(
    service: SourceService, options: KindOptions, source: Source, given: SourceInput
) -> SourceResponse:
    """Change the given settings; a credential is replaced as a whole."""
    settings = options.forms["settings"].merge_values(source.settings, given.settings)
    with usage_errors(options):
        return service.edit(source.name, settings, given.credential or None)


@contextmanager
def usage_errors(options: KindOptions) -> Iterator[None]:
    """Raise typer.BadParameter, by options, for faults of what was entered."""
    try:
        yield
    except InvalidSourceError as error:
        raise typer.BadParameter("; ".join(map(options.describe_error, error.errors))) from None


def prompt_credential(options: KindOptions) -> Mapping[str, object]:
    """Prompt for the first secret of a required credential; return nothing if none can be asked for."""
    form = options.forms["credential"]
    secret = next((one for one in form.entries() if isinstance(one.field, SecretField)), None)
    if secret is None or not sys.stdin.isatty() or _is_credential_optional(options):
        return {}
    values: dict[tuple[str, ...], object] = {secret.path: prompt_secret(secret.label)}
    return nest_values(values | infer_variants(form.parts, values))


def _is_credential_optional(options: KindOptions) -> bool:
    try:
        options.models.credential.model_validate({})
    except ValidationError:
        return False
    return True


def print_sources(console: Console, sources: Sequence[SourceResponse]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("name", overflow="fold")
    for title in ("kind", "documents", "failures", "state", "last run", "next"):
        table.add_column(title, no_wrap=True)
    for one in sources:
        starts = [start for start in one.next_starts.values() if start]
        cells = (
            one.kind,
            str(one.documents),
            str(one.failures),
            state_label(one.state),
            format_minute(one.last_run),
        )
        table.add_row(to_safe_text(one.name), *cells, _format_start(min(starts, default=None)))
    console.print(table)
    for one in sources:
        for line in _notes(one):
            console.print(to_safe_text(f"{one.name}: {line}", "dim"))


def _notes(one: SourceResponse) -> Iterator[str]:
    """Yield what a person should know besides the state."""
    if one.decision:
        yield f"{format_decision(one.decision)} To decide: quarry sources decision {one.name}"
    elif one.run and one.state in OPEN:
        yield f"{one.activity} · since {format_minute(one.run.started_at)}"
        if one.run.next_try:
            yield f"Next try: {format_minute(one.run.next_try)}."
    elif one.run and one.run.error and one.state == "failed":
        yield one.run.error
    if one.overdue:
        yield one.overdue
    if one.owner:
        yield f"Looked after by {one.owner}."
    if one.has_fixed_readers:
        yield "Its settings say who may read it."
    elif one.permissions_compared_at:
        yield f"Permissions last compared {format_minute(one.permissions_compared_at)}."


def format_decision(decision: Mapping[str, int]) -> str:
    """Describe a required decision with its counts."""
    held, found = decision.get("held", 0), decision.get("listed", 0)
    missing = decision.get("missing", 0)
    return f"It lists {found:,} of {held:,} documents; {missing:,} would be deleted."


def print_decision(console: Console, decision: DecisionResponse) -> None:
    """Print what is to be decided, what probably happened, what would go, and the commands."""
    numbers = {"held": decision.held, "listed": decision.listed, "missing": decision.missing}
    console.print(format_decision(numbers))
    console.print(to_safe_text(decision.cause))
    console.print()
    for document in decision.documents:
        console.print(
            Text.assemble(to_safe_text(document.title), to_safe_text(f"  {document.id}", "dim"))
        )
    if rest := decision.missing - len(decision.documents):
        console.print(f"and {rest:,} more", style="dim")
    console.print()
    for what, command in (("Keep them and look again", "keep"), ("Delete them", "accept")):
        console.print(to_safe_text(f"{what}: quarry sources {command} {decision.source}"))


def print_capabilities(console: Console, checks: Sequence[CapabilityResponse]) -> None:
    for one in checks:
        label, color = _WORKS[one.works] if one.supported else _UNSUPPORTED
        console.print(Text.assemble((f"{label:>8}  ", color), (one.capability, "bold")))
        if one.fault:
            console.print(to_safe_text(f"          → {one.fault}"))


def print_runs(console: Console, runs: Sequence[RunResponse]) -> None:
    table = Table("run", "kind", "state", "began", "took", "done", box=None, header_style="dim")
    for one in runs:
        table.add_row(
            str(one.id),
            run_label(one.kind),
            one.state,
            format_minute(one.started_at),
            _format_duration(one),
            to_safe_text(format_counts(one.counts)),
        )
        if one.error:
            table.add_row("", "", to_safe_text(one.error, "dim"))
    console.print(table)


def print_failures(console: Console, failures: Sequence[FailureResponse]) -> None:
    table = Table(box=None, header_style="dim")
    table.add_column("id", overflow="fold")
    table.add_column("reason", overflow="fold")
    table.add_column("tries", justify="right")
    table.add_column("next try", no_wrap=True)
    for one in failures:
        due = "when it changes" if one.waits_for_change else format_minute(one.next_try)
        table.add_row(to_safe_text(one.document_id), to_safe_text(one.reason), str(one.tries), due)
    console.print(table)


def format_minute(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}" if moment else ""


def _format_start(moment: datetime | None) -> str:
    """Format a start: only the time of day if it is today."""
    if moment is None:
        return ""
    local = moment.astimezone()
    is_today = local.date() == datetime.now().astimezone().date()
    return f"{local:%H:%M}" if is_today else f"{local:%m-%d %H:%M}"


def _format_duration(run: RunResponse) -> str:
    if run.finished_at is None:
        return ""
    seconds = round((run.finished_at - run.started_at).total_seconds())
    return f"{seconds // 60}:{seconds % 60:02}"
