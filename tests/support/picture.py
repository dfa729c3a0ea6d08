"""The picture of the README: the search page over the sample handbook, as a small PNG.

python -m tests.support.picture docs/search.png
"""

import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright

from backend.sample import handbook
from tests.support.browser import CHROMIUM, FLAGS
from tests.support.home import Home
from tests.support.serving import serving

QUERY = "scanner shows laser interlock QX-4031"
SIZE: ViewportSize = {"width": 1200, "height": 760}
COLORS = 128
LARGEST = 200_000
"""Bytes."""


def take() -> bytes:
    """A PNG of twice `SIZE` pixels."""
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.quarry("add", "folder", str(handbook()), "--name", "handbook")
        home.quarry("sync")
        with serving(home) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport=SIZE, device_scale_factor=2)
            page.goto(server.link)
            page.locator("#q").fill(QUERY)
            page.locator(".result mark").first.wait_for()
            page.get_by_text("Why this result").first.click()
            picture = page.screenshot()
            browser.close()
    return picture


def smaller(picture: bytes) -> bytes:
    """The same in fewer colors."""
    reduced = Image.open(BytesIO(picture)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    written = BytesIO()
    reduced.save(written, "PNG", optimize=True)
    return written.getvalue()


def main() -> None:
    target = Path(sys.argv[1])
    picture = smaller(take())
    if len(picture) > LARGEST:
        raise SystemExit(f"The picture has {len(picture):,} bytes, more than {LARGEST:,}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(picture)
    print(f"{target}: {len(picture):,} bytes")


if __name__ == "__main__":
    main()
