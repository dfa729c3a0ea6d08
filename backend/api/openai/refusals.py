"""What programs for OpenAI's API are refused, with the name of the parameter."""

from backend.api.openai_errors import TOO_LONG, WITHHELD
from backend.api.problem_details import Problem, problem
from backend.schemas.system import FieldError, ProblemDetails


def refuse_parameter(name: str, message: str, status: int = 422) -> Problem:
    error = FieldError(where=f"body.{name}", message=message)
    found = problem(status, message)
    return Problem(found.model_copy(update={"errors": (error,)}))


def unknown_model() -> Problem:
    return refuse_parameter(
        "model", "There is no such model, or it is not for you. GET /v1/models lists yours.", 404
    )


def describe_length(message: str, advice: str) -> ProblemDetails:
    """Return that what is asked does not fit the language model."""
    return problem(400, message, advice).model_copy(update={"type": TOO_LONG})


def describe_withheld(message: str, advice: str) -> ProblemDetails:
    """Return that the provider of the language model withheld the answer: asking again in the same words does not help."""
    return problem(400, message, advice).model_copy(update={"type": WITHHELD})
