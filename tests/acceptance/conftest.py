"""One home with the sample handbook, for all who only read it."""

import shutil

import pytest

from backend.sample import handbook
from tests.support.home import Home


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The handbook, copied, synced, and then left alone."""
    path = tmp_path_factory.mktemp("home")
    shutil.copytree(handbook(), path / "handbook")
    home = Home(path)
    assert home.quarry("add", "folder", str(path / "handbook")).code == 0
    synced = home.quarry("sync", "--json")
    assert synced.code == 0, synced.err
    (report,) = synced.json
    assert (report["documents"], report["unreadable"]) == (45, [])
    return home
