"""`quarry worker` and `quarry beat`: the background work in processes of its own."""

from typing import Annotated

import typer

from backend.cli import command_line, supervise_workers
from backend.sync.wakeup_messages import QUEUES


def worker(
    queue: Annotated[
        list[str] | None,
        typer.Option(help="fetch, index or light. May be repeated; by default all three."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="Tasks at once in each queue; by default fetch 8, index 1, light 2."
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Port for the metrics of the first queue; the others use the next ports.",
        ),
    ] = None,
    metrics_host: Annotated[str, typer.Option(help="Address for the metrics.")] = "127.0.0.1",
) -> None:
    """Sync and index in the background, woken over the broker.

    One process runs for each queue. `quarry beat` notifies them of due runs.
    """
    queues = tuple(each for each in QUEUES if each in (queue or QUEUES))
    if unknown := set(queue or ()) - set(QUEUES):
        raise typer.BadParameter(
            f"unknown queue: {', '.join(sorted(unknown))}", param_hint="--queue"
        )
    plan = supervise_workers.WorkerPlan(
        queues=queues,
        concurrency=concurrency,
        metrics_host=metrics_host,
        metrics_port=metrics_port,
    )
    with command_line.cli_errors(as_json=False):
        container = command_line.open_home()
        _ = container.sources.limits  # a mistake in its settings is said now, not in a run
        supervise_workers.supervise_workers(container.settings, plan)


def beat(
    every: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds between two checks.")
    ] = 15.0,
) -> None:
    """Notify the workers over the broker of due runs. One is enough."""
    with command_line.cli_errors(as_json=False):
        supervise_workers.supervise_beat(command_line.open_home().settings, every)
