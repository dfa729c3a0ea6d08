"""A process that works on research is killed at any moment: another one goes on at the last finished task, and nothing is lost or told twice."""

import random
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backend.research.record.record_json import read_record, write_record
from backend.research.record.request import ResearchRequest
from backend.research.record.research_record import ResearchRecord
from backend.research.runs.run_events import decode_portions
from backend.store.database import Database
from backend.store.owner import ConversationOwner
from backend.store.research import research_runs
from backend.store.research.research_runs import NewResearch
from tests.support.research_kills import open_container, start_process
from tests.support.research_world import ResearchModel
from tests.support.scripted_model import Reply, Request, ScriptedModel
from tests.unit.backend.api.conftest import connected, write_files

pytestmark = pytest.mark.soak("faults")

KILLS = 25
OWNER = ConversationOwner(None)
LEAVE = "How many weeks of paid leave do parents have?"
TRAVEL = "For which journeys is first class?"
CAGE = "Where is the bike cage?"
QUESTION = f"{LEAVE}; {TRAVEL}; {CAGE}"
SOON = 300.0


def _answer_slowly(model: ResearchModel) -> object:
    def answer(request: Request) -> Reply:
        time.sleep(0.2)
        return model(request)

    return answer


def _add(database: Database) -> str:
    record = ResearchRecord(request=ResearchRequest(question=QUESTION))
    new = NewResearch(
        owner=OWNER,
        acting_as=("public",),
        conversation_id=None,
        project_id=None,
        question=QUESTION,
        confirms_plan=False,
        record=write_record(record),
        history_document_ids=(),
    )
    return research_runs.add(database, new, datetime.now(UTC))


def _wait_for_events(database: Database, run_id: str, more_than: int) -> None:
    end = time.monotonic() + SOON
    while research_runs.get(database, OWNER, run_id).run.last_event <= more_than:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_whose_processes_are_killed_ends_as_one_whose_process_lives(tmp_path: Path) -> None:
    chance, model = random.Random(3), ResearchModel()
    files = tmp_path / "files"
    write_files(files)
    with ScriptedModel() as server:
        server.play(_answer_slowly(model))  # type: ignore[arg-type]
        home = tmp_path / "state"
        container = open_container(home, server.base_url)
        connected(container, files)
        run_id, kept = _add(container.database), 0
        for _ in range(KILLS):
            process = start_process(home, server.base_url)
            found = research_runs.get(container.database, OWNER, run_id)
            _wait_for_events(container.database, run_id, found.run.last_event)
            time.sleep(chance.uniform(0.0, 1.0))
            process.kill()
            process.join()
            found = research_runs.get(container.database, OWNER, run_id)
            assert found.run.tasks_done >= kept, "a finished task is never lost"
            kept = found.run.tasks_done
            if found.run.state == "done":
                break
        process = start_process(home, server.base_url)
        end = time.monotonic() + SOON
        while (run := research_runs.get(container.database, OWNER, run_id).run).ended_at is None:
            assert time.monotonic() < end, run
            time.sleep(0.1)
        process.kill()
        process.join()
    _check(container.database, run_id)
    container.close()


def _check(database: Database, run_id: str) -> None:
    found = research_runs.get(database, OWNER, run_id)
    report = read_record(found.record).report
    assert (found.run.state, found.run.tasks_done) == ("done", 3)
    assert report is not None
    for said in ("26 weeks of paid leave [1]", "journeys above four hours [2]", "loading bay [3]"):
        assert said in report.markdown
    stored = list(decode_portions(research_runs.follow(database, OWNER, run_id, 0).payloads))
    assert [one.number for one in stored] == list(range(1, len(stored) + 1))
    names = [one.name for one in stored]
    assert names.count("done") == names.count("report") == 1
    done = [one.data["task"]["number"] for one in stored if one.name == "task_done"]
    assert sorted(done) == [1, 2, 3], "no finished task was done twice"
