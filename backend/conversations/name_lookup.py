"""Assistants and projects as programs and the terminal name them: by an id or a name."""

from collections.abc import Mapping

from backend.conversations.assistant_service import AssistantService
from backend.conversations.project_service import ProjectService
from connectors.errors import InvalidInputError, NotFoundError
from indexing.text.normalization import fold


def find_assistant(assistants: AssistantService, wanted: str | None) -> str | None:
    """Return the id of an assistant by its id or name; None for the default one. Raises as `find_project`."""
    if wanted is None:
        return None
    usable = {one.id: one for one in assistants.list_usable()}
    names = {one.id: one.values.name for one in usable.values()}
    found = usable[_find_by_id_or_name("assistant", wanted, names)]
    return None if found.is_default else found.id


def find_project(projects: ProjectService, wanted: str | None) -> str | None:
    """Return the id of a project by its id or name.

    Raises:
        NotFoundError: it is none that the asker may use.
        InvalidInputError: several have this name.
    """
    if wanted is None:
        return None
    return _find_by_id_or_name("project", wanted, {one.id: one.name for one in projects.list_own()})


def _find_by_id_or_name(kind: str, wanted: str, names: Mapping[str, str]) -> str:
    """Return the id that was meant; `names` are those of what the asker may use, by id."""
    if wanted in names:
        return wanted
    found = [one for one, name in names.items() if fold(name).strip() == fold(wanted).strip()]
    if not found:
        raise NotFoundError(f"There is no {kind} of this id or name that you may use.")
    if len(found) > 1:
        raise InvalidInputError(
            f"Several {kind}s have this name. Give the id of one: {', '.join(found)}."
        )
    return found[0]
