"""At random: no word and no title of a document that not all who read along may read ever appears in a channel.

The language model of these tests says all that it is told, so whatever reaches it would be seen.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from backend.access.roles import Role
from tests.support.scripted_model import Reply, Request, Say, ScriptedModel
from tests.support.slack_server import SlackServer
from tests.support.slack_world import SlackWorld, find_secrets, open_slack_world, repeat_all
from tests.support.soak import scaled

CASES = scaled(scaled(12, 96, "slow"), 1_000, "access")
AT_ONCE = 6
DOCUMENTS = 24
GROUPS = ("sales", "finance", "legal")
QUESTION = "What does the case {number} say of leave?"


class Gossip:
    """Says all that it is told; before, does what the case of the question wants."""

    def __init__(self) -> None:
        self.before: dict[str, Callable[[], object]] = {}

    def __call__(self, request: Request) -> Reply:
        if not request.answers:
            return Say("")
        asked = request.questions[-1] if request.questions else ""
        self.before.pop(asked, lambda: None)()
        return repeat_all(request)


@dataclass
class Case:
    channel: str
    ts: str
    asker: str


@pytest.fixture(scope="module")
def gossip() -> Gossip:
    return Gossip()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, gossip: Gossip) -> Iterator[SlackWorld]:
    folder = tmp_path_factory.mktemp("leaks")
    settings = {"slack_answers_at_once": AT_ONCE}
    with (
        ScriptedModel(gossip) as model,
        open_slack_world(folder, model, settings) as world,
    ):
        draw = random.Random(3)
        world.add_person("root", Role.ADMIN)
        users = [world.add_person(f"p{number}") for number in range(6)]
        for group in GROUPS:
            world.add_group(group, *draw.sample(users, 3))
        for number in range(DOCUMENTS):
            _add_document(world, draw, number, users)
        world.write()
        world.start_bot()
        yield world


def _add_document(world: SlackWorld, draw: random.Random, number: int, users: list[str]) -> None:
    addresses = [f"user:{world.people[user].email}" for user in users]
    tokens = ["public", *(f"group:{name}" for name in GROUPS), *addresses]
    clauses = [draw.sample(tokens, draw.randint(1, 3)) for _ in range(draw.choice([1, 1, 1, 2]))]
    text = f"The leave of this case is secret{number}x."
    world.add_document(f"d{number}", text, *clauses, title=f"title{number}x")


def _begin_case(world: SlackWorld, draw: random.Random, gossip: Gossip, number: int) -> Case:
    slack, known = world.slack, [user for user in world.people if user != "root"]
    asker = draw.choice(known)
    others = [*known, *(_strangers(slack) if draw.random() < 0.2 else ())]
    members = {asker, *draw.sample(others, draw.randint(0, 3))}
    channel = slack.add_channel(*sorted(members))
    asked = QUESTION.format(number=number)
    if draw.random() < 0.4:
        joining = draw.choice(others)
        gossip.before[asked] = lambda: slack.channels[channel].members.append(joining)
    return Case(channel, slack.mention(channel, asker, asked), asker)


def _strangers(slack: SlackServer) -> list[str]:
    return [
        slack.add_user("nobody@example.com"),
        slack.add_user("p1@example.com", is_restricted=True),
        slack.add_user("p2@example.com", team_id="T9"),
    ]


@pytest.mark.deep("slow")
@pytest.mark.deep("access")
def test_no_channel_ever_shows_what_one_of_its_members_may_not_read(
    world: SlackWorld, gossip: Gossip
) -> None:
    draw = random.Random(5)
    shown_something = withheld_something = 0
    for first in range(0, CASES, AT_ONCE):
        cases = [
            _begin_case(world, draw, gossip, number) for number in range(first, first + AT_ONCE)
        ]
        for case in cases:
            _wait_for_end(world, case)
            shown = find_secrets(world.slack.ever_shown(case.channel))
            members = world.slack.channels[case.channel].members[1:]
            allowed = _list_secrets(world.readable_by_all([*members, case.asker]))
            assert shown <= allowed, (members, shown - allowed)
            shown_something += bool(shown)
            own = _list_secrets(world.readable_by_all([case.asker]))
            withheld_something += not own <= shown
        _change_rights(world, draw)
    assert shown_something >= CASES / 4
    assert withheld_something >= CASES / 4


def _list_secrets(document_ids: set[str]) -> set[str]:
    numbers = [one.removeprefix("d") for one in document_ids]
    return {f"{word}{number}x" for number in numbers for word in ("secret", "title")}


def _wait_for_end(world: SlackWorld, case: Case) -> None:
    """Wait until the bot has said all that it says: an answer, or why there is none."""

    def has_ended() -> bool:
        said = world.slack.of_bot(case.channel, case.ts)
        return any(one.buttons or "any more" in one.shown for one in said)

    world.slack.wait_for(has_ended)


def _change_rights(world: SlackWorld, draw: random.Random) -> None:
    """Let somebody join or leave a group, between questions."""
    group, user = draw.choice(GROUPS), draw.choice([one for one in world.people if one != "root"])
    if f"group:{group}" in world.rights[user]:
        world.remove_from_group(group, user)
    else:
        world.join_group(group, user)
