"""Processes that work on research runs until they are killed."""

import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

from backend.container import Container
from backend.settings import Settings
from tests.support.models import MODEL_CACHE
from tests.support.research_server import work

_SPAWNING = get_context("spawn")


def open_container(home: Path, model_url: str) -> Container:
    values = {"home": home, "models": MODEL_CACHE, "llm_url": model_url, "llm_model": "scripted"}
    return Container(Settings.model_validate(values))


def work_until_killed(home: Path, model_url: str) -> None:
    container = open_container(home, model_url)
    _ = container.engine.index  # opened once, before several threads use it
    with work(container):
        while True:
            time.sleep(1)


def start_process(home: Path, model_url: str) -> BaseProcess:
    process = _SPAWNING.Process(target=work_until_killed, args=(home, model_url), daemon=True)
    process.start()
    return process
