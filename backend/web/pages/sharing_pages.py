"""The page of a conversation that somebody shares, and the page on which admins see what people say of answers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from backend.api.authorization import Permission, requires
from backend.api.conversation_dependencies import HIGHEST, ShareId, get_owner
from backend.api.dependencies import AppStateDependency
from backend.api.feedback_dependencies import ReviewDependency
from backend.api.languages import find_language
from backend.chat.passages import TEXTS_INSTEAD
from backend.conversations.markdown_export import Translate
from backend.schemas.feedback import ReviewedFeedbackResponse
from backend.store.chat.answer_feedback import Rating
from backend.web.catalogs import load_messages
from backend.web.pages.ask_page import reasons_json
from backend.web.templates import page

router = APIRouter(include_in_schema=False)
FEEDBACK_PAGE = 20
RATINGS = (("", "All"), ("good", "Good"), ("bad", "Bad"), ("wrong_source", "Wrong source"))


@router.get("/shared/{share_id}", dependencies=[Depends(get_owner)])
@requires(Permission.ASK)
def shared_page(request: Request, share_id: ShareId) -> HTMLResponse:
    """Render the page, alike for every link: whether it leads anywhere, the API says."""
    values = {
        "share_id": share_id,
        "reasons": reasons_json(),
    }
    return page(request, "shared.html", "chat", values)


def find_translation(request: Request) -> Translate:
    """Return what says the headings and notices of an export as the pages of the asker would."""
    return load_messages(find_language(request)).translate


@router.get("/feedback")
@requires(Permission.ADMIN)
def feedback_page(
    request: Request,
    review: ReviewDependency,
    state: AppStateDependency,
    rating: Annotated[Rating | None, Query()] = None,
    before: Annotated[int | None, Query(ge=1, le=HIGHEST)] = None,
) -> HTMLResponse:
    """Show user feedback on answers, a page at a time; of the answers only what this admin may read."""
    found = review.list_page(rating, before, FEEDBACK_PAGE + 1)
    values = {
        "entries": [
            ReviewedFeedbackResponse.from_reviewed(one, state.answer_html)
            for one in found[:FEEDBACK_PAGE]
        ],
        "has_more": len(found) > FEEDBACK_PAGE,
        "rating": rating or "",
        "ratings": RATINGS,
        "texts_instead": TEXTS_INSTEAD,
    }
    return page(request, "feedback.html", "people", values)
