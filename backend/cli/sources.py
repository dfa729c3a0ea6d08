"""`quarry add` and `quarry sources`: what is read, when, and how it went."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from backend.cli import command_context
from backend.cli.command_context import Json, SourceName

if TYPE_CHECKING:
    from backend.cli.source_input import Given
    from backend.cli.source_options import KindOptions
    from backend.schemas import models
    from backend.store.sources import Source


class _Kinds(TyperGroup):
    """`quarry add`: a command for each kind of the catalog, which is loaded only for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        from connectors.registry import KINDS

        del ctx
        return list(KINDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.cli.source_options import KindOptions

        if cmd_name not in self.list_commands(ctx):
            return None
        options = KindOptions(cmd_name, "add")
        return options.command(cmd_name, lambda given: _added(options, given))


class _Sources(TyperGroup):
    """`quarry sources edit`: a command for each source, with the options of its kind."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.cli.source_options import KindOptions
        from backend.store import sources as stored

        del ctx
        with command_context.told(as_json=False):
            source = stored.find(command_context.open_home().database, cmd_name)
            options = KindOptions(source.kind, "edit")
        return options.command(cmd_name, lambda given: _edited(options, source, given))


adding = typer.Typer(
    cls=_Kinds,
    help="Add a source of one of these kinds.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app = typer.Typer(rich_markup_mode=None)
app.add_typer(
    typer.Typer(
        cls=_Sources,
        help="Change its settings or its credential: quarry sources edit NAME --help.",
        no_args_is_help=True,
        subcommand_metavar="NAME [OPTIONS]",
        rich_markup_mode=None,
    ),
    name="edit",
)


def _added(options: "KindOptions", given: "Given") -> None:
    from backend.cli import source_output as commands

    with command_context.told(given.as_json):
        added = commands.add(command_context.open_home(), options, given)
        if given.as_json:
            command_context.print_wire(added)
        else:
            told = f"Added {added.name!r}. To read it: quarry sync {added.name}"
            command_context.console().print(told, markup=False, soft_wrap=True)


def _edited(options: "KindOptions", source: "Source", given: "Given") -> None:
    from backend.cli import source_output as commands

    with command_context.told(given.as_json):
        edited = commands.edit(command_context.open_home(), options, source, given)
        if given.as_json:
            command_context.print_wire(edited)
        else:
            told = f"Changed. Whether it works: quarry sources test {source.name}"
            command_context.console().print(told, markup=False, soft_wrap=True)


@app.callback(invoke_without_command=True)
def listed(context: typer.Context, as_json: Json = False) -> None:
    """List the sources with their state, or look after one of them."""
    from backend.cli import source_output as commands
    from backend.schemas import conversion
    from backend.sources import listing

    if context.invoked_subcommand:
        return
    with command_context.told(as_json):
        held = listing.sources(command_context.open_home().database)
        if as_json:
            command_context.print_json(conversion.listed(held))
        elif held:
            commands.listed(command_context.console(), held)
        else:
            command_context.console().print(
                "There is no source yet. Add one: quarry add folder PATH"
            )


@app.command("test")
def tried(name: SourceName, as_json: Json = False) -> None:
    """Try whether its content, its listing and its access can be had."""
    from backend.cli import source_output as commands
    from backend.schemas import conversion
    from backend.sources import connections
    from backend.store import sources as stored

    with command_context.told(as_json):
        container = command_context.open_home()
        found = connections.test(container, stored.find(container.database, name))
        if as_json:
            command_context.print_json(conversion.listed(found))
        else:
            commands.capabilities(command_context.console(), found)
    if not all(one.works for one in found):
        raise typer.Exit(command_context.FAILED)


@app.command()
def schedule(
    name: SourceName,
    incremental: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Reading what changed.")
    ] = None,
    permissions: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Asking who may read.")
    ] = None,
    prune: Annotated[
        str | None, typer.Option(metavar="INTERVAL", help="Looking for what is gone.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell, or change, how often it is read. An interval is such as 90s, 15m, 6h or 1d; never; or usual."""
    from backend.sources import actions
    from backend.sources.intervals import interval

    given = {"incremental": incremental, "permissions": permissions, "prune": prune}
    try:
        every = {kind: interval(text) for kind, text in given.items() if text is not None}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with command_context.told(as_json):
        _print_done(actions.reschedule(command_context.open_home().database, name, every), as_json)


@app.command()
def runs(
    name: SourceName,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The last so many.")] = 20,
    as_json: Json = False,
) -> None:
    """List its last runs, newest first."""
    from backend.cli import source_output as commands
    from backend.schemas import conversion
    from backend.store import runs
    from backend.store import sources as stored

    with command_context.told(as_json):
        database = command_context.open_home().database
        history = runs.history(database, stored.find(database, name).name, limit)
        told = [conversion.ran(one) for one in history]
        if as_json:
            command_context.print_json(conversion.listed(told))
        elif told:
            commands.ran(command_context.console(), told)
        else:
            command_context.console().print(
                f"It has not been read yet: quarry sync {name}", markup=False
            )


@app.command()
def failures(name: SourceName, as_json: Json = False) -> None:
    """List what of it could not be read, why, and when it is tried again."""
    from backend.cli import source_output as commands
    from backend.schemas import conversion
    from backend.store import failures
    from backend.store import sources as stored

    with command_context.told(as_json):
        database = command_context.open_home().database
        of = stored.find(database, name).name
        failed = [conversion.failure(one) for one in failures.listing(database) if one.source == of]
        if as_json:
            command_context.print_json(conversion.listed(failed))
        elif failed:
            commands.failed(command_context.console(), failed)
        else:
            command_context.console().print("Everything of it could be read.")


@app.command()
def retry(
    name: SourceName,
    document: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="Their ids, as `failures` tells them; or all."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read again now what could not be read."""
    from backend.sources import actions

    with command_context.told(as_json):
        _print_done(
            actions.retry(command_context.open_home().database, name, document or None), as_json
        )


def _steered(word: str, name: str, as_json: bool) -> None:
    from backend.sources import actions

    with command_context.told(as_json):
        _print_done(actions.steer(command_context.open_home().database, word, name), as_json)


def _print_done(done: "models.DoneWire", as_json: bool) -> None:
    if as_json:
        command_context.print_wire(done)
    else:
        command_context.console().print(done.told, markup=False, soft_wrap=True)


@app.command()
def pause(name: SourceName, as_json: Json = False) -> None:
    """Stop what goes on, and begin nothing until it is resumed."""
    _steered("pause", name, as_json)


@app.command()
def resume(name: SourceName, as_json: Json = False) -> None:
    """Keep a paused source in step again."""
    _steered("resume", name, as_json)


@app.command()
def cancel(name: SourceName, as_json: Json = False) -> None:
    """Stop the run that goes on; what it did is kept."""
    _steered("cancel", name, as_json)


@app.command()
def prune(name: SourceName, as_json: Json = False) -> None:
    """Look for what it does not list any more, and remove it."""
    _steered("prune", name, as_json)


@app.command()
def accept(name: SourceName, as_json: Json = False) -> None:
    """Agree to what its last run asks about, such as many documents that are gone."""
    _steered("accept", name, as_json)


@app.command()
def delete(
    name: SourceName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Remove it, with all documents that it alone brought."""
    from backend.sources import listing

    with command_context.told(as_json):
        held = listing.source(command_context.open_home().database, name).documents
        question = f"Remove {name} with its {held:,} documents from Quarry?"
        if not yes and not typer.confirm(question, err=True):
            raise typer.Exit(command_context.FAILED)
    _steered("delete", name, as_json)
