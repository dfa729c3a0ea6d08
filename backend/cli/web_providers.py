"""`quarry web providers`: the search engines that are asked, and in which order."""

from typing import Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from backend.cli import command_line
from backend.cli.command_line import Json, to_safe_text
from backend.cli.source_input import SourceInput
from backend.cli.source_options import KindFamily, KindOptions
from backend.cli.source_output import format_minute, prompt_credential, usage_errors
from backend.schemas.base import dump_all
from backend.schemas.web_search import (
    ProviderAttemptResponse,
    WebOutcomeResponse,
    WebProviderResponse,
)
from backend.store.audit import OWNER
from backend.store.web_search import StoredProvider
from backend.web_search.providers.registry import PROVIDER_KINDS, get_provider_kind
from backend.web_search.service import (
    MOST_PER_MINUTE,
    TEST_QUERY,
    TEST_SECONDS,
    ProviderChange,
    WebSearchService,
)
from indexing.runtime.deadline import Deadline

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the provider.")]


def _describe_terms(kind: str) -> str:
    """Return what an admin should know before adding one of a kind, with the terms of its engines."""
    known = PROVIDER_KINDS[kind]
    terms = "\n\n".join(f"{one.engine}: {one.url}" for one in known.terms)
    note = (
        "It is asked after the providers that there are. To try it: quarry web providers test NAME"
    )
    return "\n\n".join(filter(None, (known.notice, terms, note)))


_FAMILY = KindFamily(
    get_kind=get_provider_kind,
    describe=lambda kind: f"A provider of the kind {PROVIDER_KINDS[kind].title}.",
    describe_next=_describe_terms,
    name_help="The name of the provider; by default that of its kind.",
)


class _KindCommands(TyperGroup):
    """`quarry web providers add`: a command for each kind."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(PROVIDER_KINDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        options = KindOptions(cmd_name, "add", _FAMILY)
        return options.build_command(cmd_name, lambda given: _add(options, given))


class _ProviderCommands(TyperGroup):
    """`quarry web providers edit`: a command for each provider, with the options of its kind."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        del ctx
        with command_line.cli_errors(as_json=False):
            provider = _service().find(cmd_name)
            options = KindOptions(provider.values.kind, "edit", _FAMILY)
        return options.build_command(cmd_name, lambda given: _edit(options, provider, given))


app = typer.Typer(
    help="Set the search engines that are asked, and their order.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(
    typer.Typer(
        cls=_KindCommands,
        help="Add a provider of one of these kinds.",
        no_args_is_help=True,
        rich_markup_mode=None,
    ),
    name="add",
)
app.add_typer(
    typer.Typer(
        cls=_ProviderCommands,
        help="Change the settings or the key of a provider. Its options: quarry web providers edit NAME --help",
        no_args_is_help=True,
        subcommand_metavar="NAME [OPTIONS]",
        rich_markup_mode=None,
    ),
    name="edit",
)


def _add(options: KindOptions, given: SourceInput) -> None:
    with command_line.cli_errors(given.as_json):
        credential = given.credential or prompt_credential(options)
        with usage_errors(options):
            added = _service().add(options.kind, given.settings, credential, given.name)
        if given.as_json:
            command_line.print_model(WebProviderResponse.from_stored(added))
            return
        kind = PROVIDER_KINDS[options.kind]
        lines = [kind.notice, *(f"{one.engine}: {one.url}" for one in kind.terms)]
        for line in (*filter(None, lines), _say_added(added)):
            command_line.console().print(to_safe_text(line), soft_wrap=True)


def _say_added(added: StoredProvider) -> str:
    return f"Added {added.name}. To try it: quarry web providers test {added.name}"


def _edit(options: KindOptions, provider: StoredProvider, given: SourceInput) -> None:
    settings = options.forms["settings"].merge_values(provider.values.settings, given.settings)
    change = ProviderChange(settings=settings, credential=given.credential or None)
    with command_line.cli_errors(given.as_json), usage_errors(options):
        _change(provider.name, change, given.as_json)


@app.command(name="list")
def list_all(as_json: Json = False) -> None:
    """List the providers in the order in which they are asked."""
    with command_line.cli_errors(as_json):
        found = list(map(WebProviderResponse.from_stored, _service().list_providers()))
        if as_json:
            command_line.print_json(dump_all(found))
        elif found:
            _print_providers(found)
        else:
            command_line.console().print(
                "There are no providers of web search yet. To add one: quarry web providers add"
            )


@app.command(name="test")
def try_provider(
    name: Name,
    query: Annotated[str, typer.Option(help="What it is asked.")] = TEST_QUERY,
    as_json: Json = False,
) -> None:
    """Ask one provider, also where the web is off: show what it finds, or why it fails."""
    with command_line.cli_errors(as_json):
        outcome = _service().test(name, query, Deadline.after(TEST_SECONDS))
        found = WebOutcomeResponse.from_outcome(outcome)
        if as_json:
            command_line.print_model(found)
        else:
            print_outcome(found)
    if not found.results:
        raise typer.Exit(command_line.FAILED)


@app.command()
def move(
    name: Name,
    position: Annotated[
        int, typer.Argument(min=1, metavar="PLACE", help="Position in the order; 1 is asked first.")
    ],
    as_json: Json = False,
) -> None:
    """Change the position of a provider in the order."""
    with command_line.cli_errors(as_json):
        service = _service()
        service.move(name, position)
        found = list(map(WebProviderResponse.from_stored, service.list_providers()))
        if as_json:
            command_line.print_json(dump_all(found))
        else:
            _print_providers(found)


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Remove a provider, with its key."""
    with command_line.cli_errors(as_json):
        _service().remove(name)
        if as_json:
            command_line.print_json({"name": name, "done": "is removed"})
        else:
            command_line.console().print(to_safe_text(f"{name} is removed."))


@app.command()
def enable(name: Name, as_json: Json = False) -> None:
    """Enable a disabled provider."""
    with command_line.cli_errors(as_json):
        _change(name, ProviderChange(is_enabled=True), as_json)


@app.command()
def disable(name: Name, as_json: Json = False) -> None:
    """Disable a provider without removing it."""
    with command_line.cli_errors(as_json):
        _change(name, ProviderChange(is_enabled=False), as_json)


@app.command()
def limit(
    name: Name,
    per_minute: Annotated[
        int,
        typer.Argument(
            min=0,
            max=MOST_PER_MINUTE,
            metavar="NUMBER",
            help="Searches a minute; 0: the usual limit of its kind.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Limit how many searches a minute a provider is asked, by each process."""
    with command_line.cli_errors(as_json):
        _change(name, ProviderChange(per_minute=per_minute), as_json)


def _service() -> WebSearchService:
    return command_line.open_home().web.service(OWNER)


def _change(name: str, change: ProviderChange, as_json: bool) -> None:
    changed = WebProviderResponse.from_stored(_service().edit(name, change))
    if as_json:
        command_line.print_model(changed)
    else:
        command_line.console().print(to_safe_text(f"{name} is changed."))


def _print_providers(providers: list[WebProviderResponse]) -> None:
    table = Table(
        "", "name", "kind", "asks", "a minute", "key", "state", box=None, header_style="dim"
    )
    for place, one in enumerate(providers, 1):
        cells = (
            str(place),
            one.name,
            one.kind,
            one.receiver,
            f"{one.per_minute:,}",
            "set" if one.has_credential else "none",
            "on" if one.is_enabled else "off",
        )
        table.add_row(*map(to_safe_text, cells))
    console = command_line.console()
    console.print(table)
    for one in providers:
        if one.waits_until:
            wait = f"{one.name} waits until {format_minute(one.waits_until)}: {one.wait_reason}"
            console.print(to_safe_text(wait, "dim"), soft_wrap=True)


def print_outcome(found: WebOutcomeResponse) -> None:
    """Print the results, and how each provider was asked."""
    console = command_line.console()
    for number, one in enumerate(found.results, 1):
        date = f" ({one.published:%Y-%m-%d})" if one.published else ""
        console.print(to_safe_text(f"{number}. {one.title}{date}"), soft_wrap=True)
        console.print(to_safe_text(f"   {one.url}", "dim"), soft_wrap=True)
        if one.summary:
            console.print(to_safe_text(f"   {one.summary}"), soft_wrap=True)
    for attempt in found.attempts:
        console.print(to_safe_text(_describe_attempt(attempt)), soft_wrap=True)


def _describe_attempt(attempt: ProviderAttemptResponse) -> str:
    if attempt.failure is None:
        whom = f"{attempt.provider} ({attempt.receiver})"
        return f"Answered by {whom}, which was sent: {attempt.sent}"
    was_sent = f" It was sent: {attempt.sent}" if attempt.sent else " It was sent nothing."
    return f"{attempt.provider}: {attempt.reason}{was_sent}"
