"""`quarry web`: whether and how the open web is searched, a try of it, and a page of it."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from backend.cli import command_line, web_providers, web_read
from backend.cli.command_line import Json, to_safe_text
from backend.schemas.web_search import WebOutcomeResponse, WebSettingsResponse
from backend.store.audit import OWNER
from backend.web_search.results import Freshness
from backend.web_search.service import TEST_SECONDS, RulesChange, WebSearchService
from indexing.runtime.deadline import Deadline

app = typer.Typer(
    help="Switch the open web on, set its providers, search it, read a page.",
    no_args_is_help=True,
)
app.add_typer(web_providers.app, name="providers")
app.command()(web_read.read)
_NO_DOMAIN = "none"
_LIST_HELP = "Domains that results may {} be of, with their subdomains; may be repeated. none: empty the list."


@app.command(name="on")
def switch_on(as_json: Json = False) -> None:
    """Switch web search on; people then choose it for each question."""
    _change(RulesChange(is_on=True), as_json)


@app.command(name="off")
def switch_off(as_json: Json = False) -> None:
    """Switch web search off."""
    _change(RulesChange(is_on=False), as_json)


@app.command()
def status(as_json: Json = False) -> None:
    """Show whether the web is on, and what may be in a search of it."""
    with command_line.cli_errors(as_json):
        _say(_service(), as_json)


@app.command()
def rules(
    allow: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help=_LIST_HELP.format("only"))
    ] = None,
    block: Annotated[
        list[str] | None, typer.Option(metavar="DOMAIN", help=_LIST_HELP.format("not"))
    ] = None,
    keep_names: Annotated[
        bool | None,
        typer.Option(
            "--keep-names/--send-names",
            help="Whether names and codes of internal documents are kept out of queries.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which domains results may be of, and what is kept out of queries. What is not named stays as it is."""
    change = RulesChange(
        allowed_domains=_read_list(allow),
        blocked_domains=_read_list(block),
        keeps_internal_names=keep_names,
    )
    _change(change, as_json)


@app.command()
def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="The query that is sent to the providers.")
    ],
    limit: Annotated[int, typer.Option(min=1, max=20, help="The most results.")] = 5,
    freshness: Annotated[
        Freshness | None, typer.Option(help="How old results may be at most.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="Language of the results, such as en.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the web as a question would: show the results, who answered, and who failed."""
    with command_line.cli_errors(as_json):
        deadline = Deadline.after(TEST_SECONDS)
        web = command_line.open_home().web.search
        outcome = web.search(query, limit, freshness, language, deadline)
        found = WebOutcomeResponse.from_outcome(outcome)
        if as_json:
            command_line.print_model(found)
        else:
            web_providers.print_outcome(found)
    if not found.results:
        raise typer.Exit(command_line.FAILED)


def _service() -> WebSearchService:
    return command_line.open_home().web.service(OWNER)


def _read_list(given: Sequence[str] | None) -> list[str] | None:
    """Return the domains; None where none were given, which leaves the list as it is."""
    return None if not given else [each for each in given if each != _NO_DOMAIN]


def _change(change: RulesChange, as_json: bool) -> None:
    with command_line.cli_errors(as_json):
        service = _service()
        service.change_rules(change)
        _say(service, as_json)


def _say(service: WebSearchService, as_json: bool) -> None:
    settings = WebSettingsResponse.of_stored(service.read_rules(), service.list_providers())
    if as_json:
        command_line.print_model(settings)
        return
    table = Table(box=None, show_header=False)
    names = "kept out" if settings.keeps_internal_names else "may be in them"
    for label, value in (
        ("web search", "on" if settings.is_on else "off"),
        ("providers", ", ".join(one.name for one in settings.providers) or "none"),
        ("allowed domains", ", ".join(settings.allowed_domains) or "all"),
        ("blocked domains", ", ".join(settings.blocked_domains) or "none"),
        ("internal names in queries", names),
    ):
        table.add_row(label, to_safe_text(value))
    command_line.console().print(table)
    if settings.is_on and not settings.providers:
        command_line.console().print("To add a provider: quarry web providers add")
