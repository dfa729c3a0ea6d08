"""The browser that the settings describe."""

from pathlib import Path

from backend.composition.browser import make_browser_reader
from backend.settings import Settings


def test_the_settings_say_which_browser_and_how_much_memory() -> None:
    settings = Settings(browser_path=Path("/opt/chromium"), browser_megabytes=600)
    with make_browser_reader(settings) as reader:
        assert reader._configured == Path("/opt/chromium")
        assert reader._limits.memory_bytes == 600 << 20
