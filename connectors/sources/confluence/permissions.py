"""Who may read a page: those who may view its space, and pass its restriction and those of all above it."""

from dataclasses import dataclass
from functools import reduce

from connectors.document import Access
from connectors.sources.confluence.client import Refused, needed
from connectors.sources.confluence.models import Around, Space
from connectors.sources.confluence.site import Wiki
from connectors.sources.confluence.users_and_groups import People

_UNSEEN = (
    "of those who may view it no e-mail address is shown to the account of the token: let it see them,"
    " or tell them under accounts"
)


@dataclass(frozen=True, slots=True)
class Viewers:
    """Of a space."""

    tokens: frozenset[str]
    is_open: bool = False
    """Anonymous visitors view it, and so does everybody."""
    fault: str | None = None
    """Why nobody is known to view it."""


class Rights:
    """Of one run: what was told of a space is not asked again."""

    def __init__(self, wiki: Wiki, people: People, public: Access) -> None:
        """`public` are those who may read what anonymous visitors may."""
        self._wiki = wiki
        self._people = people
        self._public = public
        self._spaces: dict[str, Viewers] = {}

    def access(self, space: Space, around: Around) -> Access:
        """
        Raises:
            ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
        """
        viewers = self.viewers(space)
        restricted = [around.viewers, *(one.viewers for one in around.ancestors)]
        passes = [self._people.tokens(one) for one in restricted if one]
        if not passes:
            public = self._public.readers if viewers.is_open else frozenset()
            return Access(viewers.tokens | public)
        passing = reduce(frozenset.__and__, passes)
        return Access(passing if viewers.is_open else passing & viewers.tokens)

    def viewers(self, space: Space) -> Viewers:
        """Nobody but, where it is open, everybody, where the token may not see who.

        Raises:
            ActionRequiredError, TemporarilyUnavailableError: see `connectors.sources.confluence.site.Wiki`.
        """
        if space.id not in self._spaces:
            self._spaces[space.id] = self._asked(space)
        return self._spaces[space.id]

    def _asked(self, space: Space) -> Viewers:
        is_open = self._wiki.is_open(space)
        try:
            with needed(f"who may view the space {space.key}"):
                viewers = self._wiki.viewers(space)
        except Refused as error:
            return Viewers(frozenset(), is_open, str(error))
        tokens = self._people.tokens(viewers)
        unseen = viewers and not tokens and not is_open
        return Viewers(tokens, is_open, _UNSEEN if unseen else None)
