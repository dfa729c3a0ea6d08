"""The thread that reads uploaded files."""

import threading

import pytest

from backend.files.file_keeper import FileIndex, FileKeeper
from tests.support.server_processes import wait_for


def test_an_error_of_the_program_ends_no_later_work(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    raised: list[type[BaseException]] = []

    def open_index() -> FileIndex:
        opened.append(threading.current_thread().name)
        raise RuntimeError("a mistake")

    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_type))
    keeper = FileKeeper(open_index)
    keeper.wake()
    wait_for(lambda: raised)
    keeper.wake()
    wait_for(lambda: len(raised) == 2)
    assert opened == ["files", "files"]
    assert raised == [RuntimeError, RuntimeError]
