"""Who somebody in Slack is here: the account of the address that Slack has confirmed.

Only full members of the workspace of the bot are somebody. Bots, guests, strangers of shared channels and deactivated users
are nobody, whatever address their profile states.
"""

import threading
import time
from dataclasses import dataclass
from enum import StrEnum

from backend.access.people import normalize_email
from backend.programs.slack.web_api import SlackApi, SlackCallError, SlackUser
from backend.store.accounts import people
from backend.store.accounts.people import Person
from backend.store.database import Database
from connectors.errors import InvalidInputError

KEPT_SECONDS = 300.0
"""For which the address of somebody who reads along is kept; that of the person who asks is read each time."""
_GONE = frozenset({"user_not_found", "user_not_visible", "users_not_found"})


class NobodyReason(StrEnum):
    """Why somebody is not answered, as it is said to them."""

    NO_MEMBER = "I answer full members of this workspace only: no guests, apps or people of other organizations."
    NO_ADDRESS = "Slack has no confirmed e-mail address of yours. Confirm it in your profile, then ask again."
    NO_ACCOUNT = (
        "You have no account at Quarry with the e-mail address that you have in Slack."
        " Ask an administrator of Quarry to invite you, then ask again."
    )
    DISABLED = "Your account at Quarry is disabled. Ask an administrator of Quarry."


@dataclass(frozen=True, slots=True)
class _Kept:
    email: str | None
    at: float


class Directory:
    """
    Args:
        team_id: the workspace of the bot.
    """

    def __init__(self, api: SlackApi, database: Database, team_id: str) -> None:
        self._api = api
        self._database = database
        self._team_id = team_id
        self._lock = threading.Lock()
        self._emails: dict[str, _Kept] = {}

    def find_asker(self, user_id: str) -> Person | NobodyReason:
        """Return whose account it is now, or why it is nobody's."""
        user = self._find_user(user_id)
        if user is None or not self._is_member(user):
            return NobodyReason.NO_MEMBER
        if user.email is None:
            return NobodyReason.NO_ADDRESS
        person = self._find_person(user.email)
        if person is None:
            return NobodyReason.NO_ACCOUNT
        return NobodyReason.DISABLED if person.disabled_at is not None else person

    def find_reader(self, user_id: str) -> Person | None:
        """Return whose account it is; None for one who reads public documents only."""
        email = self._find_email(user_id)
        person = self._find_person(email) if email else None
        return None if person is None or person.disabled_at is not None else person

    def _find_email(self, user_id: str) -> str | None:
        with self._lock:
            kept = self._emails.get(user_id)
        if kept is not None and time.monotonic() - kept.at < KEPT_SECONDS:
            return kept.email
        user = self._find_user(user_id)
        email = user.email if user is not None and self._is_member(user) else None
        with self._lock:
            self._emails[user_id] = _Kept(email, time.monotonic())
        return email

    def _find_user(self, user_id: str) -> SlackUser | None:
        try:
            return self._api.find_user(user_id)
        except SlackCallError as error:
            if error.code in _GONE:
                return None
            raise

    def _is_member(self, user: SlackUser) -> bool:
        return user.is_active_member and self._team_id in user.team_ids

    def _find_person(self, email: str) -> Person | None:
        try:
            return people.find_by_email(self._database, normalize_email(email))
        except InvalidInputError:
            return None
