"""Who may read a page, by its restriction."""

from typing import cast

from connectors.access import Access
from connectors.sources.confluence.models import (
    UNKNOWN_PRINCIPALS,
    ContentContext,
    Principals,
    Space,
    User,
)
from connectors.sources.confluence.permissions import PermissionReader, make_space_token
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory

SPACE = Space(id="7", key="HB", name="Handbook")
OF_SPACE = make_space_token(1, SPACE)
NO_SITE = cast(Site, None)
"""Nobody is looked up: addresses are configured."""


def get_access(viewers: Principals) -> Access:
    users = UserDirectory(NO_SITE, {"557058:ann": "ann@example.com"})
    return PermissionReader(1, users).get_access(SPACE, ContentContext(viewers=viewers))


def test_people_are_named_by_their_addresses() -> None:
    ann = Principals(users=(User(key="557058:ann"),))
    assert get_access(ann) == Access.all_of([[OF_SPACE], ["user:ann@example.com"]])


def test_a_restriction_that_may_not_be_seen_names_nobody() -> None:
    assert get_access(UNKNOWN_PRINCIPALS) == Access.all_of([[OF_SPACE], []])
