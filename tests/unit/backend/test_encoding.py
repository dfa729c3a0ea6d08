"""What programs are told, and what telling it costs."""

import subprocess
import sys

from backend import encoding
from backend.chat.events import AnswerDone, Citation
from backend.chat.support import Support, Verdict
from connectors.document import Span

_LOADED = "import sys; import backend.encoding; print(*sys.modules)"


def test_it_loads_no_room_and_no_database() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(ran.stdout.split())
    assert "backend.wire" in loaded
    assert not loaded & {"sqlalchemy", "backend.store", "backend.chat", "backend.search"}
