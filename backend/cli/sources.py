"""`quarry add` and `quarry sources`: connect sources, change them and show their state."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from backend.cli import command_line
from backend.cli.command_line import Json, SourceName

if TYPE_CHECKING:
    from collections.abc import Callable

    from backend.cli.source_input import SourceInput
    from backend.cli.source_options import KindOptions
    from backend.schemas.source import SourceActionResponse
    from backend.sources.service import SourceService
    from backend.store.sync.sources import Source


class _KindCommands(TyperGroup):
    """`quarry add`: a command for each kind of source; their models are only loaded when needed."""

    def list_commands(self, ctx: Any) -> list[str]:
        from connectors.registry import SOURCE_KINDS

        del ctx
        return list(SOURCE_KINDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.cli.source_options import KindOptions

        if cmd_name not in self.list_commands(ctx):
            return None
        options = KindOptions(cmd_name, "add")
        return options.build_command(cmd_name, lambda given: _add_source(options, given))


class _SourceCommands(TyperGroup):
    """`quarry sources edit`: a command for each source, with the options of its kind."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.cli.source_options import KindOptions

        del ctx
        with command_line.cli_errors(as_json=False):
            source = _service().get(cmd_name)
            options = KindOptions(source.kind, "edit")
        return options.build_command(cmd_name, lambda given: _edit_source(options, source, given))


adding = typer.Typer(
    cls=_KindCommands,
    help="Add a source of one of these kinds.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app = typer.Typer(rich_markup_mode=None)
app.add_typer(
    typer.Typer(
        cls=_SourceCommands,
        help="Change the settings or the credential of a source. Its options: quarry sources edit NAME --help",
        no_args_is_help=True,
        subcommand_metavar="NAME [OPTIONS]",
        rich_markup_mode=None,
    ),
    name="edit",
)


def _add_source(options: "KindOptions", given: "SourceInput") -> None:
    from backend.cli import source_output

    with command_line.cli_errors(given.as_json):
        added = source_output.add(_service(), options, given)
        if given.as_json:
            command_line.print_model(added)
        else:
            message = f"Added {added.name!r}. To sync it: quarry sync {added.name}"
            command_line.console().print(message, markup=False, soft_wrap=True)


def _edit_source(options: "KindOptions", source: "Source", given: "SourceInput") -> None:
    from backend.cli import source_output

    with command_line.cli_errors(given.as_json):
        edited = source_output.edit(_service(), options, source, given)
        if given.as_json:
            command_line.print_model(edited)
        else:
            command_line.console().print("Saved. Trying the connection:", markup=False)
            source_output.print_capabilities(command_line.console(), _service().test(source.name))
            if edited.notice:
                command_line.console().print(edited.notice, markup=False)


@app.callback(invoke_without_command=True)
def list_sources(context: typer.Context, as_json: Json = False) -> None:
    """List the sources with their state, or manage one of them."""
    from backend.cli import source_output
    from backend.schemas.base import dump_all

    if context.invoked_subcommand:
        return
    with command_line.cli_errors(as_json):
        statuses = _service().list_statuses()
        if as_json:
            command_line.print_json(dump_all(statuses))
        elif statuses:
            source_output.print_sources(command_line.console(), statuses)
        else:
            command_line.console().print("There is no source yet. Add one: quarry add folder PATH")


@app.command("test")
def check_connection(name: SourceName, as_json: Json = False) -> None:
    """Test the connection: whether content, listing and permissions can be read."""
    from backend.cli import source_output
    from backend.schemas.base import dump_all

    with command_line.cli_errors(as_json):
        checks = _service().test(name)
        if as_json:
            command_line.print_json(dump_all(checks))
        else:
            source_output.print_capabilities(command_line.console(), checks)
    if any(one.supported and not one.works for one in checks):
        raise typer.Exit(command_line.FAILED)


@app.command()
def schedule(
    name: SourceName,
    incremental: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Interval of content syncs.")
    ] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Interval of permission syncs.")
    ] = None,
    prune: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Interval of deletion checks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show or change how often a source is synced. Intervals: 90s, 15m, 6h, 1d and the like; never; usual."""
    from backend.sources.intervals import parse_interval

    given = {"incremental": incremental, "permissions": permissions, "prune": prune}
    try:
        every = {kind: parse_interval(text) for kind, text in given.items() if text is not None}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    _run(
        lambda service: (
            service.reschedule(name, every) if every else service.describe_schedule(name)
        ),
        as_json,
    )


@app.command()
def runs(
    name: SourceName,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of runs to show.")] = 20,
    as_json: Json = False,
) -> None:
    """List its last runs, newest first."""
    from backend.cli import source_output
    from backend.schemas.base import dump_all

    with command_line.cli_errors(as_json):
        history = _service().list_runs(name, limit)
        if as_json:
            command_line.print_json(dump_all(history))
        elif history:
            source_output.print_runs(command_line.console(), history)
        else:
            command_line.console().print(
                f"It has not been synced yet. To sync it: quarry sync {name}", markup=False
            )


@app.command()
def failures(name: SourceName, as_json: Json = False) -> None:
    """List the documents that could not be read, with the reasons and the next tries."""
    from backend.cli import source_output
    from backend.schemas.base import dump_all

    with command_line.cli_errors(as_json):
        failed = _service().list_failures(name)
        if as_json:
            command_line.print_json(dump_all(failed))
        elif failed:
            source_output.print_failures(command_line.console(), failed)
        else:
            command_line.console().print("All of its documents could be read.")


@app.command()
def retry(
    name: SourceName,
    document: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="Ids of failed documents; all by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try failed documents again now."""
    _run(lambda service: service.retry(name, document or None), as_json)


def _service() -> "SourceService":
    from backend.sources.service import SourceService

    return SourceService.of(command_line.open_home().sources)


def _run(action: "Callable[[SourceService], SourceActionResponse]", as_json: bool) -> None:
    with command_line.cli_errors(as_json):
        done = action(_service())
        if as_json:
            command_line.print_model(done)
        else:
            command_line.console().print(done.told, markup=False, soft_wrap=True)


@app.command()
def owner(
    name: SourceName,
    email: Annotated[
        str | None,
        typer.Argument(metavar="[EMAIL]", help="Address of an admin or a source manager."),
    ] = None,
    admins: Annotated[
        bool, typer.Option("--admins", help="All admins instead of one person.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Change who looks after a source."""
    if (email is None) is not admins:
        raise typer.BadParameter("Give either an address or --admins.")
    with command_line.cli_errors(as_json):
        changed = _service().set_owner(name, email)
        if as_json:
            command_line.print_model(changed)
        else:
            message = f"{name} is looked after by {changed.owner or 'the admins'}."
            command_line.console().print(message, markup=False, soft_wrap=True)


@app.command()
def pause(name: SourceName, as_json: Json = False) -> None:
    """Stop the current run, and start none until the source is resumed."""
    _run(lambda service: service.pause(name), as_json)


@app.command()
def resume(name: SourceName, as_json: Json = False) -> None:
    """Sync a paused source again."""
    _run(lambda service: service.resume(name), as_json)


@app.command()
def cancel(name: SourceName, as_json: Json = False) -> None:
    """Stop the current run; documents that it has indexed are kept."""
    _run(lambda service: service.cancel(name), as_json)


@app.command()
def prune(name: SourceName, as_json: Json = False) -> None:
    """Check for documents that the source no longer lists, and delete them."""
    _run(lambda service: service.prune(name), as_json)


@app.command()
def decision(
    name: SourceName,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="Number of documents to show.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Show which documents are missing from the source, what probably happened, and what to do."""
    from backend.cli import source_output

    with command_line.cli_errors(as_json):
        found = _service().decision(name, limit=limit)
        if as_json:
            command_line.print_model(found)
        else:
            source_output.print_decision(command_line.console(), found)


@app.command()
def accept(name: SourceName, as_json: Json = False) -> None:
    """Accept the deletions for which the last run needs a decision: see `quarry sources decision`."""
    _run(lambda service: service.accept(name), as_json)


@app.command()
def keep(name: SourceName, as_json: Json = False) -> None:
    """Keep the documents for which the last run needs a decision, and list the source again."""
    _run(lambda service: service.keep(name), as_json)


@app.command()
def delete(
    name: SourceName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Remove the source and all documents that no other source provides."""
    with command_line.cli_errors(as_json):
        count = _service().status(name).documents
        question = f"Remove {name} with its {count:,} documents from Quarry?"
        if not yes and not typer.confirm(question, err=True):
            raise typer.Exit(command_line.FAILED)
    _run(lambda service: service.delete(name), as_json)
