"""The routes of conversations, of what is shared of them, of projects, of files that come with questions, of memories, and of kept
knowledge."""

from backend.api.authorization import Permission
from tests.support.access_expected import OBJECT, QUESTION, Kind, answers, answers_people

_CONVERSATION = "/api/conversations/{conversation_id}"
_MESSAGE = f"{_CONVERSATION}/messages/{{message_id}}"
_SHARED = "/api/shared/{share_id}"
_PROJECT = "/api/projects/{project_id}"
_PAGE = "/projects/{project_id}"
_RESEARCH = "/api/research/{research_id}"
_RESEARCH_PAGE = "/research/{research_id}"
_RESEARCH_FORM = {"question": QUESTION, "knowledge": "on", "minutes": "5"}
_ASSISTANT = "/api/assistants/{assistant_id}"
_DEPOT = {"name": "New depot"}
_BOB = {"email": "bob@example.com"}
_FIRST = {"question": QUESTION}
_GOOD = {"rating": "good"}

ROUTES_OF_CONVERSATIONS = {
    "GET /chat": answers_people(),
    # The page is alike for all of them: what there is, its script asks the API.
    "GET /chat/{conversation_id}": answers_people(Kind.CONVERSATION, missing=200),
    "GET /api/conversations": answers_people(),
    "POST /api/conversations": answers_people(found=202, json={"question": QUESTION}),
    f"GET {_CONVERSATION}": answers_people(Kind.CONVERSATION),
    f"GET {_CONVERSATION}#leaf": answers_people(Kind.MESSAGE_IN_OWN, query={"leaf": OBJECT}),
    f"GET {_CONVERSATION}#before": answers_people(Kind.MESSAGE_IN_OWN, query={"before": OBJECT}),
    f"PATCH {_CONVERSATION}": answers_people(
        Kind.CONVERSATION, json={"title": "Leave", "archived": True}
    ),
    f"PATCH {_CONVERSATION}#back": answers_people(Kind.CONVERSATION, json={"archived": False}),
    f"PATCH {_CONVERSATION}#nothing": answers_people(Kind.CONVERSATION, json={}),
    f"PATCH {_CONVERSATION}#leaf": answers_people(Kind.MESSAGE_IN_OWN, json={"leaf_id": OBJECT}),
    f"DELETE {_CONVERSATION}": answers_people(Kind.CONVERSATION, 204),
    f"PUT {_CONVERSATION}/project": answers_people(Kind.CONVERSATION, json={"project_id": None}),
    f"PUT {_CONVERSATION}/project#own": answers_people(
        Kind.PROJECT_OF_OWN_CONVERSATION, json={"project_id": OBJECT}
    ),
    f"POST {_CONVERSATION}/messages": answers_people(
        Kind.CONVERSATION, 202, json={"question": QUESTION, "parent_id": None}
    ),
    f"POST {_CONVERSATION}/messages#parent": answers_people(
        Kind.MESSAGE_IN_OWN, 202, json={"question": QUESTION, "parent_id": OBJECT}
    ),
    f"POST {_MESSAGE}/regenerate": answers_people(Kind.MESSAGE, 202),
    f"POST {_MESSAGE}/regenerate#own": answers_people(Kind.MESSAGE_IN_OWN, 202),
    f"POST {_MESSAGE}/stop": answers_people(Kind.MESSAGE, 202),
    f"POST {_MESSAGE}/stop#own": answers_people(Kind.MESSAGE_IN_OWN, 202),
    f"POST {_CONVERSATION}/stop": answers_people(Kind.CONVERSATION, 204),
    f"GET {_MESSAGE}/events": answers_people(Kind.MESSAGE),
    f"GET {_MESSAGE}/events#own": answers_people(Kind.MESSAGE_IN_OWN),
}
ROUTES_OF_SHARING = {
    f"GET {_CONVERSATION}/share": answers_people(Kind.CONVERSATION),
    f"POST {_CONVERSATION}/share": answers_people(Kind.MESSAGE, json={"message_id": OBJECT}),
    f"POST {_CONVERSATION}/share#own": answers_people(
        Kind.MESSAGE_IN_OWN, json={"message_id": OBJECT}
    ),
    f"DELETE {_CONVERSATION}/share": answers_people(Kind.CONVERSATION, 204),
    f"GET {_CONVERSATION}/export": answers_people(Kind.CONVERSATION),
    f"GET {_CONVERSATION}/export#leaf": answers_people(Kind.MESSAGE_IN_OWN, query={"leaf": OBJECT}),
    # The page is alike for all of them: what there is, its script asks the API.
    "GET /shared/{share_id}": answers_people(Kind.SHARE, missing=200),
    "GET /shared/{share_id}#ended": answers_people(Kind.ENDED_SHARE, missing=200),
    f"GET {_SHARED}": answers_people(Kind.SHARE),
    f"GET {_SHARED}#ended": answers_people(Kind.ENDED_SHARE),
    f"GET {_SHARED}/export": answers_people(Kind.SHARE),
    f"GET {_SHARED}/export#ended": answers_people(Kind.ENDED_SHARE),
    f"POST {_SHARED}/copy": answers_people(Kind.SHARE, 201),
    f"POST {_SHARED}/copy#ended": answers_people(Kind.ENDED_SHARE, 201),
    f"GET {_CONVERSATION}/feedback": answers_people(Kind.CONVERSATION),
    f"PUT {_MESSAGE}/feedback": answers_people(Kind.MESSAGE, 204, json=_GOOD),
    f"PUT {_MESSAGE}/feedback#own": answers_people(Kind.MESSAGE_IN_OWN, 204, json=_GOOD),
    f"DELETE {_MESSAGE}/feedback": answers_people(Kind.MESSAGE, 204),
    f"DELETE {_MESSAGE}/feedback#own": answers_people(Kind.MESSAGE_IN_OWN, 204),
    "GET /feedback": answers(Permission.ADMIN),
    "GET /api/admin/feedback": answers(Permission.ADMIN),
    "GET /api/admin/feedback/export": answers(Permission.ADMIN),
}
ROUTES_OF_PROJECTS = {
    "GET /projects": answers_people(),
    "POST /projects": answers_people(found=422, form={}),
    f"GET {_PAGE}": answers_people(Kind.PROJECT),
    f"GET {_PAGE}#joined": answers_people(Kind.JOINED_PROJECT),
    f"GET {_PAGE}/conversations/{{conversation_id}}": answers_people(Kind.PROJECT_CONVERSATION),
    f"GET {_PAGE}/conversations/{{conversation_id}}#own": answers_people(
        Kind.PROJECT_CONVERSATION_IN_OWN
    ),
    f"POST {_PAGE}/change": answers_people(Kind.PROJECT, 303, form=_DEPOT),
    f"POST {_PAGE}/change#joined": answers_people(Kind.JOINED_PROJECT, 422, form=_DEPOT),
    f"POST {_PAGE}/add": answers_people(Kind.PROJECT, 303, form=_BOB),
    f"POST {_PAGE}/add#joined": answers_people(Kind.JOINED_PROJECT, 422, form=_BOB),
    # Whoever is not in it is not any more.
    f"POST {_PAGE}/remove": answers_people(Kind.PROJECT_MEMBER, 303, form={"member": OBJECT}),
    f"POST {_PAGE}/remove#own": answers_people(
        Kind.PROJECT_MEMBER_IN_OWN, 303, missing=303, form={"member": OBJECT}
    ),
    f"POST {_PAGE}/remove#joined": answers_people(
        Kind.JOINED_PROJECT, 422, form={"member": "999999"}
    ),
    f"POST {_PAGE}/leave": answers_people(Kind.PROJECT, 303),
    f"POST {_PAGE}/leave#joined": answers_people(Kind.JOINED_PROJECT, 303),
    f"POST {_PAGE}/delete": answers_people(Kind.PROJECT, 303),
    f"POST {_PAGE}/delete#joined": answers_people(Kind.JOINED_PROJECT, 422),
    "GET /api/projects": answers_people(),
    "POST /api/projects": answers_people(found=201, json=_DEPOT),
    f"GET {_PROJECT}": answers_people(Kind.PROJECT),
    f"GET {_PROJECT}#joined": answers_people(Kind.JOINED_PROJECT),
    f"PATCH {_PROJECT}": answers_people(Kind.PROJECT, json=_DEPOT),
    f"PATCH {_PROJECT}#joined": answers_people(Kind.JOINED_PROJECT, 403, json=_DEPOT),
    f"DELETE {_PROJECT}": answers_people(Kind.PROJECT, 204),
    f"DELETE {_PROJECT}#joined": answers_people(Kind.JOINED_PROJECT, 403),
    f"POST {_PROJECT}/try": answers_people(Kind.PROJECT, json=_FIRST),
    f"POST {_PROJECT}/try#joined": answers_people(Kind.JOINED_PROJECT, 403, json=_FIRST),
    f"GET {_PROJECT}/members": answers_people(Kind.PROJECT),
    f"GET {_PROJECT}/members#joined": answers_people(Kind.JOINED_PROJECT),
    f"POST {_PROJECT}/members": answers_people(Kind.PROJECT, json=_BOB),
    f"POST {_PROJECT}/members#joined": answers_people(Kind.JOINED_PROJECT, 403, json=_BOB),
    f"DELETE {_PROJECT}/members/{{member_id}}": answers_people(Kind.PROJECT_MEMBER, 204),
    f"DELETE {_PROJECT}/members/{{member_id}}#own": answers_people(
        Kind.PROJECT_MEMBER_IN_OWN, 204, missing=204
    ),
    f"GET {_PROJECT}/conversations": answers_people(Kind.PROJECT),
    f"GET {_PROJECT}/conversations#joined": answers_people(Kind.JOINED_PROJECT),
    f"GET {_PROJECT}/conversations/{{conversation_id}}": answers_people(Kind.PROJECT_CONVERSATION),
    f"GET {_PROJECT}/conversations/{{conversation_id}}#own": answers_people(
        Kind.PROJECT_CONVERSATION_IN_OWN
    ),
    f"GET {_PROJECT}/messages/{{message_id}}/events": answers_people(Kind.PROJECT_MESSAGE),
    f"GET {_PROJECT}/messages/{{message_id}}/events#own": answers_people(
        Kind.PROJECT_MESSAGE_IN_OWN
    ),
    "POST /api/conversations#project": answers_people(
        Kind.PROJECT, 202, json=_FIRST | {"project_id": OBJECT}
    ),
    "POST /api/conversations#joined": answers_people(
        Kind.JOINED_PROJECT, 202, json=_FIRST | {"project_id": OBJECT}
    ),
}

ROUTES_OF_FILES = {
    "GET /api/files": answers_people(),
    # What is sent is no form with a file.
    "POST /api/files": answers_people(found=422),
    "GET /api/files/{file_id}": answers_people(Kind.FILE),
    "DELETE /api/files/{file_id}": answers_people(Kind.FILE, 204),
    # Its text is not kept here, which the body says.
    "GET /api/files/{file_id}/content": answers_people(Kind.FILE, 404),
    "GET /files": answers_people(),
    "POST /files/{file_id}/delete": answers_people(Kind.FILE, 303),
    "POST /api/conversations#files": answers_people(
        Kind.FILE, 202, json={"question": QUESTION, "files": [OBJECT]}
    ),
}

_MEMORY = {"text": "I work in Leeds."}
ROUTES_OF_RESEARCH = {
    "GET /api/research": answers_people(),
    # No language model is set.
    "POST /api/research": answers_people(found=409, json={"question": QUESTION}),
    f"GET {_RESEARCH}": answers_people(Kind.RESEARCH),
    "GET /research": answers_people(),
    "POST /research": answers_people(found=409, form=_RESEARCH_FORM),
    f"GET {_RESEARCH_PAGE}": answers_people(Kind.RESEARCH),
    f"GET {_RESEARCH_PAGE}/state": answers_people(Kind.RESEARCH),
    # It has started, and ended.
    f"POST {_RESEARCH_PAGE}/clarification": answers_people(
        Kind.RESEARCH, 409, form={"skip": "yes"}
    ),
    f"POST {_RESEARCH_PAGE}/plan": answers_people(
        Kind.RESEARCH, 409, form={"keep-1": "on", "task-1": QUESTION}
    ),
    f"POST {_RESEARCH_PAGE}/stop": answers_people(Kind.RESEARCH, 303),
    f"POST {_RESEARCH_PAGE}/delete": answers_people(Kind.RESEARCH, 303),
    f"DELETE {_RESEARCH}": answers_people(Kind.RESEARCH, 204),
    f"POST {_RESEARCH}/stop": answers_people(Kind.RESEARCH, 202),
    f"GET {_RESEARCH}/events": answers_people(Kind.RESEARCH),
    f"GET {_RESEARCH}/report": answers_people(Kind.RESEARCH),
    f"GET {_RESEARCH}/report#docx": answers_people(Kind.RESEARCH, query={"format": "docx"}),
    # It has started, and ended.
    f"PUT {_RESEARCH}/plan": answers_people(Kind.RESEARCH, 409, json={"tasks": [QUESTION]}),
    f"POST {_RESEARCH}/start": answers_people(Kind.RESEARCH, 409),
    f"POST {_RESEARCH}/clarification": answers_people(Kind.RESEARCH, 409, json={"answer": None}),
}
ROUTES_OF_MEMORIES = {
    "GET /api/memories": answers_people(),
    "POST /api/memories": answers_people(found=201, json=_MEMORY),
    "DELETE /api/memories": answers_people(found=204),
    "PATCH /api/memories/{memory_id}": answers_people(Kind.MEMORY, json=_MEMORY),
    "DELETE /api/memories/{memory_id}": answers_people(Kind.MEMORY, 204),
    "GET /memories": answers_people(),
    "POST /memories": answers_people(found=303, form=_MEMORY),
    "POST /memories/delete": answers_people(found=303),
    "POST /memories/{memory_id}": answers_people(Kind.MEMORY, 303, form=_MEMORY),
    "POST /memories/{memory_id}/delete": answers_people(Kind.MEMORY, 303),
}

_CORRECTION = {"question": "Where?", "answer": "In Leeds."}
_IN_CONVERSATION = {"conversation_id": OBJECT}
ROUTES_OF_KNOWLEDGE = {
    "GET /api/knowledge": answers_people(),
    # What is kept in another's conversation is not there, as what is kept in none.
    "GET /api/knowledge#conversation": answers_people(
        Kind.CONVERSATION, missing=200, query=_IN_CONVERSATION
    ),
    "POST /api/knowledge": answers_people(found=201, json={"items": []}),
    "POST /api/knowledge#conversation": answers_people(
        Kind.CONVERSATION, 201, query=_IN_CONVERSATION, json={"items": []}
    ),
    "POST /api/knowledge#project": answers_people(
        Kind.PROJECT, 201, query={"project_id": OBJECT}, json={"items": []}
    ),
    "GET /api/knowledge/export": answers_people(),
    "GET /api/knowledge/{item_id}": answers_people(Kind.KNOWLEDGE),
    "PATCH /api/knowledge/{item_id}": answers_people(Kind.KNOWLEDGE, json=_CORRECTION),
    "DELETE /api/knowledge/{item_id}": answers_people(Kind.KNOWLEDGE, 204),
    "GET /knowledge": answers_people(),
    # What is sent is no exported file.
    "POST /knowledge/import": answers_people(found=422, form={"file": ""}),
    "GET /knowledge/{item_id}": answers_people(Kind.KNOWLEDGE),
    "POST /knowledge/{item_id}": answers_people(Kind.KNOWLEDGE, 303, form=_CORRECTION),
    "POST /knowledge/{item_id}/delete": answers_people(Kind.KNOWLEDGE, 303),
}

ROUTES_OF_SHARED_FILES = {
    f"GET {_PROJECT}/files": answers_people(Kind.PROJECT),
    f"GET {_PROJECT}/files#joined": answers_people(Kind.JOINED_PROJECT),
    # What is sent is no form with a file.
    f"POST {_PROJECT}/files": answers_people(Kind.PROJECT, 422, missing=422),
    f"PUT {_PROJECT}/files/{{file_id}}": answers_people(Kind.PROJECT_FILE),
    f"PUT {_PROJECT}/files/{{file_id}}#own": answers_people(Kind.FILE_FOR_OWN_PROJECT),
    f"DELETE {_PROJECT}/files/{{file_id}}": answers_people(Kind.PROJECT_FILE, 204),
    f"DELETE {_PROJECT}/files/{{file_id}}#joined": answers_people(Kind.JOINED_PROJECT_FILE, 403),
    f"GET {_ASSISTANT}/files": answers_people(Kind.ASSISTANT),
    f"GET {_ASSISTANT}/files#group": answers_people(Kind.GROUP_ASSISTANT),
    f"GET {_ASSISTANT}/files#shared": answers_people(Kind.SHARED_ASSISTANT),
    f"POST {_ASSISTANT}/files": answers_people(Kind.ASSISTANT, 422, missing=422),
    f"PUT {_ASSISTANT}/files/{{file_id}}": answers_people(Kind.ASSISTANT_FILE),
    f"PUT {_ASSISTANT}/files/{{file_id}}#own": answers_people(Kind.FILE_FOR_OWN_ASSISTANT),
    f"DELETE {_ASSISTANT}/files/{{file_id}}": answers_people(Kind.ASSISTANT_FILE, 204),
}
