"""The routes by which programs put documents in."""

from backend.api.authorization import Permission
from tests.support.access_expected import OBJECT, Kind, answers

_INGEST = Permission.INGEST
_DOCUMENT = {"id": "x", "title": "X", "text": "It is pushed.", "readers": ["group:nobodys"]}

ROUTES_OF_INGESTION = {
    "POST /api/documents": answers(
        _INGEST, Kind.INGEST_SOURCE, 202, json={"source": OBJECT, "documents": [_DOCUMENT]}
    ),
    # Nothing is sent that could be a form.
    "POST /api/documents/file": answers(_INGEST, found=422),
    "DELETE /api/documents": answers(
        _INGEST, Kind.INGEST_SOURCE, 202, query={"source": OBJECT, "id": "x"}
    ),
    "DELETE /api/documents/{document_id:path}": answers(_INGEST, Kind.PUSHED_DOCUMENT, 204),
    "GET /api/ingestion": answers(_INGEST, Kind.INGEST_SOURCE, query={"source": OBJECT}),
    "GET /api/ingestion/{document_id:path}": answers(_INGEST, Kind.PUSHED_DOCUMENT),
}
