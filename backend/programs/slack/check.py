"""Whether the bot can answer: its tokens, what they may do, and the accounts of those who ask."""

from collections.abc import Callable, Iterator

from backend.container import Container
from backend.programs.slack.service import SlackTokens, connect
from backend.programs.slack.web_api import BotIdentity, SlackApi, SlackCallError
from backend.schemas.system import DoctorCheck
from backend.store.accounts.people import list_people
from backend.store.database import Database
from connectors.errors import NotConfiguredError, QuarryError

SCOPES = frozenset(
    {
        "app_mentions:read",
        "channels:read",
        "chat:write",
        "groups:read",
        "im:history",
        "im:read",
        "im:write",
        "mpim:read",
        "users:read",
        "users:read.email",
    }
)
"""What the token of the bot has to be allowed; `docs/slack.md` says what for."""


def check_bot(container: Container) -> Iterator[DoctorCheck]:
    """Yield the checks; where the tokens are missing or refused, nothing further is tried."""
    try:
        tokens = SlackTokens.of(container.settings)
        api, identity = connect(container.settings, tokens)
    except QuarryError as error:
        yield _fail("workspace", error)
        return
    yield _state_workspace(identity)
    yield _try("scopes", lambda: _check_scopes(api))
    yield _try("socket mode", lambda: _check_socket(api, tokens))
    yield _check_accounts(container.database)


def _state_workspace(identity: BotIdentity) -> DoctorCheck:
    detail = f"{identity.team_name} ({identity.team_id}), as {identity.user_id}"
    return DoctorCheck(name="workspace", state="ok", detail=detail)


def _try(name: str, check: Callable[[], DoctorCheck]) -> DoctorCheck:
    try:
        return check()
    except QuarryError as error:
        return _fail(name, error)


def _fail(name: str, error: QuarryError) -> DoctorCheck:
    return DoctorCheck(name=name, state="failed", detail=str(error), advice="See docs/slack.md.")


def _check_scopes(api: SlackApi) -> DoctorCheck:
    missing = sorted(SCOPES - api.list_scopes())
    if not missing:
        return DoctorCheck(name="scopes", state="ok", detail="all that are needed")
    return DoctorCheck(
        name="scopes",
        state="failed",
        detail=f"missing: {', '.join(missing)}",
        advice="Add them on the page OAuth & Permissions of the app, then install it again.",
    )


def _check_socket(api: SlackApi, tokens: SlackTokens) -> DoctorCheck:
    try:
        api.open_socket(tokens.app)
    except SlackCallError as error:
        raise NotConfiguredError(f"Slack refuses QUARRY_SLACK_APP_TOKEN: {error.code}.") from error
    return DoctorCheck(name="socket mode", state="ok", detail="the token of the app is accepted")


def _check_accounts(database: Database) -> DoctorCheck:
    active = [one for one in list_people(database) if one.disabled_at is None]
    if active:
        return DoctorCheck(name="accounts", state="ok", detail=f"{len(active)} active")
    return DoctorCheck(
        name="accounts",
        state="failed",
        detail="there are none, so that nobody in Slack is known",
        advice="quarry users invite ann@example.com --role admin",
    )
