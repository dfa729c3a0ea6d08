"""What may be set of an assistant."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from backend.store.chat.assistants import AssistantValues, Visibility
from backend.web_search.domains import parse_domain
from connectors.errors import InvalidInputError
from indexing.text.normalization import is_storable

LONGEST_NAME = 80
LONGEST_DESCRIPTION = 300
LONGEST_INSTRUCTIONS = 4_000
"""About a thousand tokens, which the smallest context window has room for."""
MOST_STARTERS, LONGEST_STARTER = 8, 200
MOST_NAMES, LONGEST_SET_NAME = 100, 200
HIGHEST_TEMPERATURE = 2.0


def validate_values(
    values: AssistantValues, before: AssistantValues | None = None
) -> AssistantValues:
    """Return the values without blanks at their ends, each name and starter once.

    Args:
        before: What they were, if they were kept already.

    Raises:
        InvalidInputError: one is not valid.
    """
    cleaned = replace(
        values,
        name=check_line(values.name, "The name", LONGEST_NAME),
        description=check_text(values.description, "The description", LONGEST_DESCRIPTION),
        instructions=check_text(values.instructions, "The instructions", LONGEST_INSTRUCTIONS),
        starters=_check_starters(values.starters),
        sources=_check_number(values.sources, "sources"),
        sets=check_set_names(values.sets),
        allowed_domains=_check_domains(values.allowed_domains),
        blocked_domains=_check_domains(values.blocked_domains),
        groups=_check_groups(values, before),
    )
    temperature = values.temperature
    if temperature is not None and not (
        math.isfinite(temperature) and 0 <= temperature <= HIGHEST_TEMPERATURE
    ):
        raise InvalidInputError(f"The temperature is a number from 0 to {HIGHEST_TEMPERATURE:g}.")
    return cleaned


def check_sources(given: Iterable[str], visible: Collection[str]) -> None:
    """Refuse sources that the asker may not see; one of those, and one that there is not, are the same.

    Raises:
        InvalidInputError: one of these names is not visible.
    """
    if unknown := [name for name in given if name not in visible]:
        raise InvalidInputError(f"You can read nothing of a source named {unknown[0]}.")


def find_labels(names: Iterable[str], visible: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels of document sets, which outlast changes of their names.

    Args:
        visible: the names of the sets that are shown to the asker, by label.

    Raises:
        InvalidInputError: none of these has this name.
    """
    labels = {name: label for label, name in visible.items()}
    if unknown := [name for name in names if name not in labels]:
        raise InvalidInputError(f"There is no document set named {unknown[0]}.")
    return tuple(labels[name] for name in names)


def check_set_names(names: Iterable[str]) -> tuple[str, ...]:
    return _check_number(
        (check_line(name, "The name of a document set", LONGEST_SET_NAME) for name in names),
        "document sets",
    )


def _check_starters(starters: Iterable[str]) -> tuple[str, ...]:
    checked = [check_line(one, "A starter", LONGEST_STARTER) for one in starters if one.strip()]
    kept = tuple(dict.fromkeys(checked))
    if len(kept) > MOST_STARTERS:
        raise InvalidInputError(f"There are at most {MOST_STARTERS} starters.")
    return kept


def _check_domains(domains: Iterable[str]) -> tuple[str, ...]:
    return _check_number(map(parse_domain, domains), "domains")


def _check_groups(values: AssistantValues, before: AssistantValues | None) -> tuple[str, ...]:
    if values.visibility is not Visibility.GROUPS:
        return ()
    groups = _check_number(values.groups, "groups")
    # Its groups may all have been deleted since they were chosen: that is no mistake in the change of something else.
    were_deleted = (
        before is not None and before.visibility is values.visibility and not before.groups
    )
    if not groups and not were_deleted:
        raise InvalidInputError("Choose at least one group whose members may use the assistant.")
    return groups


def _check_number(names: Iterable[str], what: str) -> tuple[str, ...]:
    kept = tuple(dict.fromkeys(names))
    if len(kept) > MOST_NAMES:
        raise InvalidInputError(f"An assistant names at most {MOST_NAMES} {what}.")
    return kept


def check_line(text: str, what: str, longest: int) -> str:
    cleaned = " ".join(text.split())
    if not cleaned or not cleaned.isprintable():
        raise InvalidInputError(f"{what} has 1 to {longest} characters on one line.")
    return check_text(cleaned, what, longest)


def check_text(text: str, what: str, longest: int) -> str:
    cleaned = text.strip()
    if len(cleaned) > longest:
        raise InvalidInputError(
            f"{what} may have {longest:,} characters, these are {len(cleaned):,}. Shorten the text."
        )
    if not is_storable(cleaned):
        raise InvalidInputError(f"{what} contains an invalid character.")
    return cleaned
