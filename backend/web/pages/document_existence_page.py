"""The page of an administrator's look at a document: that it exists, its title, and who may read it."""

from fastapi import Request
from fastapi.responses import HTMLResponse

from backend.access.document_existence import look_at_document
from backend.api.authorization import AskerDependency, Permission, requires
from backend.api.dependencies import DatabaseDependency
from backend.web.forms import FormDependency
from backend.web.templates import page
from connectors.errors import InvalidInputError, NotFoundError


@requires(Permission.ADMIN)
def document_existence_page(
    request: Request, database: DatabaseDependency, asker: AskerDependency, form: FormDependency
) -> HTMLResponse:
    """Render what a look shows. A form leads to it: what is only followed or reloaded looks at nothing."""
    name = form.get("document", "").strip()
    if not name:
        raise InvalidInputError("Name the document to look at.")
    try:
        look = look_at_document(database, name, asker.actor)
    except NotFoundError:
        return page(request, "document_existence.html", "search", {"name": name, "look": None}, 404)
    return page(request, "document_existence.html", "search", {"name": name, "look": look})
