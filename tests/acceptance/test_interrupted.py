"""`quarry sync` in the middle of one huge document, and Ctrl-C."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.home import QUARRY, Home

pytestmark = pytest.mark.soak("faults")

LINKS = 400_000
"""Links that are opened and never closed: 4.4 MB, and half a minute to cut alone."""
PROMPT = 5.0


@pytest.mark.parametrize("after", [5.0, 12.0, 30.0])
def test_a_sync_ends_within_seconds_in_the_middle_of_a_huge_document(
    tmp_path: Path, after: float
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "links.md").write_text("[a](http:\n " * LINKS, encoding="utf-8")
    home = Home(tmp_path)
    assert home.quarry("add", "folder", str(folder)).code == 0
    with subprocess.Popen(
        [str(QUARRY), "sync"],
        env=home.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            time.sleep(after)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stderr
            assert process.stderr.readline() == "Stopping…\n"
            assert time.monotonic() - began < 1
            # `communicate` would miss what came together with the line above.
            output = process.stderr.read()
            process.wait(60)
            assert time.monotonic() - began < PROMPT
            assert "Stopped. What was done is kept" in output
        finally:
            process.kill()
    (source,) = home.quarry("sources", "--json").json
    assert source["state"] == "interrupted"
