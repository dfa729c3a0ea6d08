"""The page of the audit: who did what, from where and when; filtered, a page at a time, or as a file."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import HTMLResponse

from backend.api.authorization import Permission, requires
from backend.api.dependencies import SourcesDependency
from backend.store.audit import AuditFilter
from backend.web.templates import page

AUDIT_PAGE = 50
MOST_ID = 2**31 - 1
_DAY = r"^((19[7-9]\d|[2-8]\d{3})-\d\d-\d\d)?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditForm:
    """What is chosen on the page of the audit; a field without text chooses nothing. Days are of UTC."""

    source: Annotated[str, Query(max_length=100)] = ""
    actor: Annotated[str, Query(max_length=400)] = ""
    action: Annotated[str, Query(max_length=100)] = ""
    since: Annotated[str, Query(max_length=10, pattern=_DAY)] = ""
    until: Annotated[str, Query(max_length=10, pattern=_DAY)] = ""

    def to_filter(self) -> AuditFilter:
        end = _to_moment(self.until)
        return AuditFilter(
            subject=self.source or None,
            actor=self.actor.strip() or None,
            action=self.action or None,
            since=_to_moment(self.since),
            until=end and end + timedelta(days=1),
        )

    def to_query(self) -> str:
        """Return it as the query of an address of this page."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    def to_export_query(self) -> str:
        """Return it as the query of the export by the API, which takes moments."""
        which = self.to_filter()
        moments = {"since": which.since, "until": which.until}
        chosen = {"source": which.subject, "actor": which.actor, "action": which.action} | {
            name: moment.isoformat() for name, moment in moments.items() if moment
        }
        return urlencode({name: value for name, value in chosen.items() if value})


def _to_moment(day: str) -> datetime | None:
    """Return the beginning of a day; None where none is chosen, or there is no such day."""
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


@requires(Permission.ADMIN)
def audit_page(
    request: Request,
    sources: SourcesDependency,
    form: Annotated[AuditForm, Depends()],
    before: Annotated[int | None, Query(ge=1, le=MOST_ID)] = None,
) -> HTMLResponse:
    """Show who did what, from where and when, a page at a time."""
    found = sources.list_audit(form.to_filter(), before=before, limit=AUDIT_PAGE + 1)
    values = {
        "entries": found[:AUDIT_PAGE],
        "has_more": len(found) > AUDIT_PAGE,
        "form": form,
        "names": sources.list_audited_sources(),
        "actions": sources.list_audited_actions(),
    }
    return page(request, "audit.html", "people", values)
