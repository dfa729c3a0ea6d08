"""What this server offers to programs, as a text for language models (https://llmstxt.org)."""

from fastapi import APIRouter
from starlette.responses import PlainTextResponse

from backend.api.authorization import Permission, requires

router = APIRouter(include_in_schema=False)
TEXT = """\
# Quarry

> Quarry searches the documents of an organization and answers questions from them, with a citation for every claim. Each request sees only what its asker may read.

Requests carry an API token: `Authorization: Bearer qry_…`. A person makes one on their account page, an admin by `quarry tokens create`; its scopes (`search`, `ask`, `ingest`, `admin`, `metrics`) say which routes it is for.
A program that speaks OAuth 2.1 gets a token of a person by itself, where people have accounts: see `/.well-known/oauth-authorization-server`.
Errors are problem details (RFC 9457) with what to do next; below `/v1` they have the shape of OpenAI's. Long answers are server-sent events, the last of which is `done` or `error`.

## Description

- [OpenAPI description](/openapi.json): every route with examples of requests and answers; needs the scope `search`

## Agents

- `/mcp`: the tools `search`, `fetch`, `ask` and `research`, and the documents as resources, by the Model Context Protocol (streamable HTTP)

## Search and answers

- `POST /api/search`: documents for a question, best first, with the passages that match; filters by source, tag, set and date
- `GET /api/documents/{document_id}`: the text of a document
- `POST /api/ask`: an answer whose numbers lead to its sources, as server-sent events
- `POST /api/conversations`: the first question of a conversation; its answer goes on when the connection is lost
- `POST /api/research`: a question that takes many searches; its report comes in minutes, and its events are followed meanwhile
- `GET /api/research/{research_id}/events`, `GET /api/research/{research_id}/report`: what it does as server-sent events; its report as Markdown or a Word document
- `POST /api/references`: the sources of a text that has none yet

## Programs for OpenAI's API

- `GET /v1/models`: the assistants, as models
- `POST /v1/chat/completions`, `POST /v1/responses`: answers, with their sources as annotations
- `POST /v1/embeddings`: vectors of texts, by the model of the index

## Documents of your own programs

- `POST /api/documents`: put documents in, each with its readers; needs the scope `ingest`
- `GET /api/ingestion`: what became of them
"""


@router.get("/llms.txt")
@requires(Permission.ANYONE)
def show_llms_text() -> PlainTextResponse:
    return PlainTextResponse(TEXT, media_type="text/markdown")
