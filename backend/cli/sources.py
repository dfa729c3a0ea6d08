"""`quarry add` and `quarry sources`: what is read, when, and how it went."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from backend.cli import frame
from backend.cli.frame import Json, SourceName

if TYPE_CHECKING:
    from backend import wire
    from backend.commands.given import Given
    from backend.commands.options import KindOptions
    from backend.store.sources import Source


class _Kinds(TyperGroup):
    """`quarry add`: a command for each kind of the catalog, which is loaded only for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        from connectors.registry import KINDS

        del ctx
        return list(KINDS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.commands.options import KindOptions

        if cmd_name not in self.list_commands(ctx):
            return None
        options = KindOptions(cmd_name, "add")
        return options.command(cmd_name, lambda given: _added(options, given))


class _Sources(TyperGroup):
    """`quarry sources edit`: a command for each source, with the options of its kind."""

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        from backend.commands.options import KindOptions
        from backend.store import sources as stored

        del ctx
        with frame.told(as_json=False):
            source = stored.find(frame.open_home().database, cmd_name)
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
    from backend.commands import sources as commands

    with frame.told(given.as_json):
        added = commands.add(frame.open_home(), options, given)
        if given.as_json:
            frame.print_wire(added)
        else:
            told = f"Added {added.name!r}. To read it: quarry sync {added.name}"
            frame.console().print(told, markup=False, soft_wrap=True)


def _edited(options: "KindOptions", source: "Source", given: "Given") -> None:
    from backend.commands import sources as commands

    with frame.told(given.as_json):
        edited = commands.edit(frame.open_home(), options, source, given)
        if given.as_json:
            frame.print_wire(edited)
        else:
            told = f"Changed. Whether it works: quarry sources test {source.name}"
            frame.console().print(told, markup=False, soft_wrap=True)


@app.callback(invoke_without_command=True)
def listed(context: typer.Context, as_json: Json = False) -> None:
    """List the sources with their state, or look after one of them."""
    from backend import encoding, listing
    from backend.commands import sources as commands

    if context.invoked_subcommand:
        return
    with frame.told(as_json):
        held = listing.sources(frame.open_home().database)
        if as_json:
            frame.print_json(encoding.listed(held))
        elif held:
            commands.listed(frame.console(), held)
        else:
            frame.console().print("There is no source yet. Add one: quarry add folder PATH")


@app.command("test")
def tried(name: SourceName, as_json: Json = False) -> None:
    """Try whether its content, its listing and its access can be had."""
    from backend import connecting, encoding
    from backend.commands import sources as commands
    from backend.store import sources as stored

    with frame.told(as_json):
        quarry = frame.open_home()
        found = connecting.test(quarry, stored.find(quarry.database, name))
        if as_json:
            frame.print_json(encoding.listed(found))
        else:
            commands.capabilities(frame.console(), found)
    if not all(one.works for one in found):
        raise typer.Exit(frame.FAILED)


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
    from backend import steering
    from backend.intervals import interval

    given = {"incremental": incremental, "permissions": permissions, "prune": prune}
    try:
        every = {kind: interval(text) for kind, text in given.items() if text is not None}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with frame.told(as_json):
        _print_done(steering.reschedule(frame.open_home().database, name, every), as_json)


@app.command()
def runs(
    name: SourceName,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The last so many.")] = 20,
    as_json: Json = False,
) -> None:
    """List its last runs, newest first."""
    from backend import encoding
    from backend.commands import sources as commands
    from backend.store import runs
    from backend.store import sources as stored

    with frame.told(as_json):
        database = frame.open_home().database
        history = runs.history(database, stored.find(database, name).name, limit)
        told = [encoding.ran(one) for one in history]
        if as_json:
            frame.print_json(encoding.listed(told))
        elif told:
            commands.ran(frame.console(), told)
        else:
            frame.console().print(f"It has not been read yet: quarry sync {name}", markup=False)


@app.command()
def failures(name: SourceName, as_json: Json = False) -> None:
    """List what of it could not be read, why, and when it is tried again."""
    from backend import encoding
    from backend.commands import sources as commands
    from backend.store import failures
    from backend.store import sources as stored

    with frame.told(as_json):
        database = frame.open_home().database
        of = stored.find(database, name).name
        failed = [encoding.failure(one) for one in failures.listing(database) if one.source == of]
        if as_json:
            frame.print_json(encoding.listed(failed))
        elif failed:
            commands.failed(frame.console(), failed)
        else:
            frame.console().print("Everything of it could be read.")


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
    from backend import steering

    with frame.told(as_json):
        _print_done(steering.retry(frame.open_home().database, name, document or None), as_json)


def _steered(word: str, name: str, as_json: bool) -> None:
    from backend import steering

    with frame.told(as_json):
        _print_done(steering.steer(frame.open_home().database, word, name), as_json)


def _print_done(done: "wire.DoneWire", as_json: bool) -> None:
    if as_json:
        frame.print_wire(done)
    else:
        frame.console().print(done.told, markup=False, soft_wrap=True)


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
    from backend import listing

    with frame.told(as_json):
        held = listing.source(frame.open_home().database, name).documents
        question = f"Remove {name} with its {held:,} documents from Quarry?"
        if not yes and not typer.confirm(question, err=True):
            raise typer.Exit(frame.FAILED)
    _steered("delete", name, as_json)
