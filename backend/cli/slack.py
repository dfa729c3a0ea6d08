"""`quarry slack`: the bot that answers in Slack, and whether it can."""

import typer

from backend.cli import command_line
from backend.cli.command_line import FAILED, Json
from backend.cli.doctor import print_checks
from backend.cli.supervised_processes import until_signalled

app = typer.Typer(
    help="Answer in Slack (extra 'slack'), and check whether that works.", no_args_is_help=True
)


@app.command()
def run() -> None:
    """Answer in Slack until Ctrl-C or SIGTERM. Answers in progress are finished or marked as interrupted."""
    with command_line.cli_errors(as_json=False):
        from backend.programs.slack.service import SlackService
        from backend.worker.process import start_logging

        service = SlackService(command_line.open_home())
        start_logging()
        with until_signalled() as stopping:
            service.run(stopping)


@app.command()
def check(as_json: Json = False) -> None:
    """Check the tokens, what they may do, and that there are accounts."""
    with command_line.cli_errors(as_json):
        from backend.programs.slack.check import check_bot

        checks = list(check_bot(command_line.open_home()))
        if as_json:
            command_line.print_json([one.model_dump(mode="json") for one in checks])
        else:
            print_checks(command_line.console(), checks)
        if any(one.state == "failed" for one in checks):
            raise typer.Exit(FAILED)
