"""Who may read a page: those who may view its space and pass its restriction and those of its ancestors.

A page names its space and the groups of its restrictions as clauses; `reader_groups` lists who belongs to them. Somebody to
whom a page is restricted is named by the e-mail address, or by the account where the site shows none.
"""

from dataclasses import dataclass

from connectors.access import Access, make_account_token, make_external_token
from connectors.http_client.api_client import AccessDeniedError, required
from connectors.sources.confluence.models import ContentContext, Group, Principals, Space, User
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory

_NO_EMAILS = (
    "the account of the token sees no e-mail address of those who may view it: let it see them, or"
    " list them under accounts"
)


def make_space_token(source_id: int, space: Space) -> str:
    return make_external_token(source_id, f"space/{space.id}")


def make_group_token(source_id: int, group: Group) -> str:
    return make_external_token(source_id, f"group/{group.id}")


def make_user_token(source_id: int, user: User) -> str:
    """Return the token of the account of a user."""
    # A user name may be equal to the key of another person.
    return make_account_token(source_id, user.key or f"name={user.username}")


@dataclass(frozen=True, slots=True)
class SpaceViewers:
    principals: Principals
    is_public: bool = False
    """Whether anonymous visitors may view it, and so everybody."""
    error: str | None = None
    """Why nobody is known to view it."""


def read_space_viewers(site: Site, space: Space) -> SpaceViewers:
    """Return who may view a space; if the token may not see it, only whether it is public.

    Raises:
        SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
    """
    is_public = site.is_public(space)
    try:
        with required(f"the permissions of the space {space.key}"):
            return SpaceViewers(site.read_viewers(space), is_public)
    except AccessDeniedError as error:
        return SpaceViewers(Principals(), is_public, str(error))


def find_viewers_problem(site: Site, users: UserDirectory, space: Space) -> str | None:
    """Return why nobody can be found who may view a space, or None."""
    viewers = read_space_viewers(site, space)
    if viewers.error or not viewers.principals or viewers.is_public:
        return viewers.error
    return None if users.get_tokens(viewers.principals) else _NO_EMAILS


@dataclass(frozen=True, slots=True)
class PermissionReader:
    """Reads the clauses of pages."""

    source_id: int
    users: UserDirectory

    def get_access(self, space: Space, context: ContentContext) -> Access:
        """Return the access of a page: all of its space, its restriction and those of its ancestors.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        restrictions = [context.viewers, *(one.viewers for one in context.ancestors)]
        clauses = [self._to_clause(one) for one in restrictions if one]
        return Access.all_of([{make_space_token(self.source_id, space)}, *clauses])

    def _to_clause(self, viewers: Principals) -> frozenset[str]:
        groups = (make_group_token(self.source_id, one) for one in viewers.groups)
        return frozenset(groups).union(*map(self._name_user, viewers.users))

    def _name_user(self, user: User) -> frozenset[str]:
        known = self.users.get_user_tokens([user])
        if known or not (user.key or user.username):
            return known
        return frozenset({make_user_token(self.source_id, user)})
