"""Who may read a page: those who may view its space and pass its restriction and those of its ancestors."""

from dataclasses import dataclass
from functools import reduce

from connectors.access import Access
from connectors.http_client.api_client import AccessDeniedError, required
from connectors.sources.confluence.models import ContentContext, Space
from connectors.sources.confluence.site import Site
from connectors.sources.confluence.users_and_groups import UserDirectory

_NO_EMAILS = (
    "the account of the token sees no e-mail address of those who may view it: let it see them, or"
    " list them under accounts"
)


@dataclass(frozen=True, slots=True)
class SpaceViewers:
    tokens: frozenset[str]
    is_public: bool = False
    """Whether anonymous visitors may view it, and so everybody."""
    error: str | None = None
    """Why nobody is known to view it."""


class PermissionReader:
    """Reads who may view pages; each space is requested once a run."""

    def __init__(self, site: Site, users: UserDirectory, public: Access) -> None:
        """`public` may read what anonymous visitors may view."""
        self._site = site
        self._users = users
        self._public = public
        self._spaces: dict[str, SpaceViewers] = {}

    def get_access(self, space: Space, context: ContentContext) -> Access:
        """Return the readers of a page.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        viewers = self.get_viewers(space)
        restrictions = [context.viewers, *(one.viewers for one in context.ancestors)]
        permitted = [self._users.get_tokens(one) for one in restrictions if one]
        if not permitted:
            public = self._public.readers if viewers.is_public else frozenset()
            return Access.to(viewers.tokens | public)
        by_all = reduce(frozenset.__and__, permitted)
        return Access.to(by_all if viewers.is_public else by_all & viewers.tokens)

    def get_viewers(self, space: Space) -> SpaceViewers:
        """Return who may view a space; if the token may not see it, only whether it is public.

        Raises:
            SourceAuthError, TemporarilyUnavailableError: see `ApiClient`.
        """
        if space.id not in self._spaces:
            self._spaces[space.id] = self._read_viewers(space)
        return self._spaces[space.id]

    def _read_viewers(self, space: Space) -> SpaceViewers:
        is_public = self._site.is_public(space)
        try:
            with required(f"the permissions of the space {space.key}"):
                viewers = self._site.read_viewers(space)
        except AccessDeniedError as error:
            return SpaceViewers(frozenset(), is_public, str(error))
        tokens = self._users.get_tokens(viewers)
        has_no_emails = viewers and not tokens and not is_public
        return SpaceViewers(tokens, is_public, _NO_EMAILS if has_no_emails else None)
