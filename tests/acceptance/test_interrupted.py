"""`quarry sync` in the middle of one huge document, and Ctrl-C."""

import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from backend.store.database import open_database, sqlite_url
from backend.store.sync import runs
from tests.support.home import QUARRY, Home
from tests.support.server_processes import wait_for

pytestmark = pytest.mark.soak("faults")

LINKS = 400_000
"""Links that are opened and never closed, all different: 6.7 MB, which take minutes to read, cut and embed."""
PROMPT = 10.0
"""Seconds."""


def has_begun(home: Home) -> bool:
    with closing(open_database(sqlite_url(home.path / "state" / "quarry.db"))) as database:
        return bool(runs.latest(database))


@pytest.mark.parametrize("after", [3.0, 10.0, 28.0])
def test_a_sync_ends_within_seconds_in_the_middle_of_a_huge_document(
    tmp_path: Path, after: float
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    links = "".join(f"[a](http:{number}\n " for number in range(LINKS))
    (folder / "links.md").write_text(links, encoding="utf-8")
    home = Home(tmp_path)
    assert home.quarry("add", "folder", str(folder)).code == 0
    # Tests that a shell runs in the background ignore the key, and would hand that on.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [str(QUARRY), "sync"],
        env=home.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, usual)
    with process:
        try:
            wait_for(lambda: has_begun(home))
            time.sleep(after)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stderr
            assert process.stderr.readline() == "Stopping…\n"
            assert time.monotonic() - began < 3
            # `communicate` would miss what came together with the line above.
            output = process.stderr.read()
            process.wait(60)
            assert time.monotonic() - began < PROMPT
            assert "Stopped. What was done is kept" in output
        finally:
            process.kill()
    (source,) = home.quarry("sources", "--json").json
    assert source["state"] == "interrupted"
