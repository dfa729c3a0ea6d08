"""A home that a program opens: for whom, what becomes of an index that is switched, and what is closed."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from typer.testing import CliRunner

from backend.access.roles import Role
from backend.cli import app
from backend.files.file_keeper import read_upload
from backend.programs.langchain import OpenedHome, ToolSession, open_home
from backend.store.files import user_files, waiting_uploads
from backend.store.files.user_files import NewFile
from backend.sync.run_lease import is_dead, this_process
from connectors.errors import ConflictError
from tests.support.accounts import add_person
from tests.support.conversations import OWNER
from tests.support.home import CHECKOUT
from tests.unit.backend.programs.langchain.conftest import ANN, Company
from tests.unit.backend.programs.langchain.test_tools import call, documents_of

TEXT = b"# Quay\n\nThe quay of Nantmoor is closed in May.\n"


def upload_quay(company: Company) -> None:
    new = NewFile(
        id="quay",
        name="quay.md",
        media_type="text/markdown",
        size=len(TEXT),
        sha256="quay",
        document_id="Your files:quay",
        data=TEXT,
    )
    user_files.add(company.container.database, OWNER, new, 9)
    upload = waiting_uploads.claim(company.container.database, this_process(), is_dead)
    assert upload is not None
    read_upload(company.container.sources.file_index, upload)


def finds_quay(home: OpenedHome) -> bool:
    return "Nantmoor" in str(home.make_retriever().invoke("quay of Nantmoor"))


def test_without_readers_the_owner_of_the_machine_asks(company: Company) -> None:
    upload_quay(company)
    with (
        open_home(settings=company.settings) as owners,
        open_home(ANN, settings=company.settings) as anns,
    ):
        assert (finds_quay(owners), finds_quay(anns)) == (True, False)
        assert "4,711" not in str(owners.make_retriever().invoke("budget of QX-4471"))
        add_person(company.container.database, "ann@example.com", Role.ADMIN)
        assert not finds_quay(owners)


def test_a_reader_that_is_none_is_refused(company: Company) -> None:
    with (
        pytest.raises(ValueError, match="not a reader"),
        open_home("ann", settings=company.settings),
    ):
        pass


@pytest.mark.soak("slow")
def test_an_index_that_is_switched_to_another_model_is_opened_anew(company: Company) -> None:
    environment = {
        "QUARRY_HOME": str(company.settings.home),
        "QUARRY_EMBEDDING_URL": company.embedding.url,
    }
    with open_home(ANN, settings=company.settings) as home:
        internal, _ = home.make_tools(ToolSession())
        before = documents_of(call(internal, queries="QX-4471").text)
        done = CliRunner(env=environment).invoke(app, ["reindex", "--model", "another"])
        assert done.exit_code == 0, done.output
        begin = Barrier(8)

        def search(_: int) -> str:
            begin.wait(20)
            return call(internal, queries="QX-4471").text

        with ThreadPoolExecutor(8) as threads:
            assert [documents_of(text) for text in threads.map(search, range(8))] == [before] * 8
        assert {one["model"] for one in company.embedding.requests} >= {"another"}


def test_the_block_closes_what_was_opened(company: Company) -> None:
    with open_home(ANN, settings=company.settings) as home:
        retriever = home.make_retriever()
        assert retriever.invoke("leave")
    with pytest.raises(ConflictError, match="closed"):
        retriever.invoke("leave")
    home.close()


def test_without_the_extra_the_import_says_what_to_install() -> None:
    program = "import sys; sys.modules['langchain_core'] = None; import backend.programs.langchain"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'quarry-search[langchain]'" in done.stderr.splitlines()[-1]
