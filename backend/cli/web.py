"""`quarry web`: the open web."""

import typer

from backend.cli import web_read

app = typer.Typer(help="Read pages of the open web.", no_args_is_help=True)
app.command()(web_read.read)


@app.callback()
def web() -> None:
    """Read pages of the open web."""
