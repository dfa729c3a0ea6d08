"""The assistant of a run: its instructions, and what it searches now."""

from backend.chat import prompts as chat_prompts
from backend.chat.turn_settings import AssistantSettings
from backend.research.dependencies import ResearchDependencies, ResearchRefusal

ASSISTANT_GONE = "The assistant of this research is no longer available."
ASK_ANOTHER = "Ask again with another assistant."


WITHOUT_ASSISTANT = ResearchRefusal(ASSISTANT_GONE, ASK_ANOTHER)


def find_refusal(dependencies: ResearchDependencies) -> ResearchRefusal | None:
    """Return why nothing more is searched: where the assistant was deleted, or is not for the person any more, nothing takes its place."""
    readers = dependencies.resolve_readers()
    if readers is not None and dependencies.resolve_assistant(readers) is None:
        return WITHOUT_ASSISTANT
    return dependencies.refusal


def read_instructions(dependencies: ResearchDependencies) -> str:
    """Return what the prompts of a step end with; nothing where there are no instructions."""
    readers = dependencies.resolve_readers()
    assistant = None if readers is None else dependencies.resolve_assistant(readers)
    return "" if assistant is None else write_instructions(assistant)


def write_instructions(assistant: AssistantSettings) -> str:
    return chat_prompts.assistant_prompt(assistant.instructions, assistant.project_instructions)
