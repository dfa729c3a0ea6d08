"""`quarry demo`, and what runs until it is stopped: the page, the workers, the beat."""

from typing import Annotated

import typer

from backend.cli import command_context
from backend.cli.command_context import As


def demo() -> None:
    """Index the sample company handbook and answer three questions."""
    from backend.cli.demo import run

    with command_context.told(as_json=False):
        run(command_context.open_home(), command_context.console())


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8321,
    host: Annotated[str, typer.Option(help="An address of this machine.")] = "127.0.0.1",
    readers: As = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Also log what is asked, which is private.")
    ] = False,
) -> None:
    """Serve the page and the HTTP API, for the person at this machine."""
    import logging

    from backend.cli import serve

    asker = command_context.readers(readers)
    try:
        address = serve.loopback(host)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--host") from error
    with command_context.told(as_json=False):
        bound = serve.listener(address, port)
        level = logging.DEBUG if debug else logging.INFO
        serve.serve(command_context.open_home(), bound, asker, command_context.console(), level)


def worker(
    queue: Annotated[
        list[str] | None,
        typer.Option(help="fetch, index or light. May be repeated; all of them by default."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="At once in each; by default 8 to fetch, 1, and 2."),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Metrics of the first queue; the next have the next."),
    ] = None,
    metrics_host: Annotated[
        str, typer.Option(help="The address that they are told on.")
    ] = "127.0.0.1",
) -> None:
    """Do what is due, one process a queue, woken over the broker; see quarry beat."""
    from backend.cli.supervise_workers import Plan, work_on
    from backend.sync.wakeup_messages import QUEUES

    queues = tuple(each for each in QUEUES if each in (queue or QUEUES))
    if unknown := set(queue or ()) - set(QUEUES):
        raise typer.BadParameter(f"there is no {', '.join(sorted(unknown))}", param_hint="--queue")
    plan = Plan(
        queues=queues,
        concurrency=concurrency,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
    )
    with command_context.told(as_json=False):
        work_on(command_context.open_home().settings, plan)


def beat(
    every: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between two looks.")
    ] = 15.0,
) -> None:
    """Tell the workers over the broker what is due, again and again. One is enough."""
    from backend.cli.supervise_workers import beat as beating

    with command_context.told(as_json=False):
        beating(command_context.open_home().settings, every)
