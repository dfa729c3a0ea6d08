"""Texts are embedded in batches of like length, within a deadline, by a small process."""

import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from indexing.embedding.embedder import Vectors
from indexing.embedding.openvino_embedder import Inputs, Network, make_batches, read_record
from indexing.embedding.tokenizer_file import TOKENIZER_FILE
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.models import MINILM, MODEL_CACHE, minilm

_HOME = Path(__file__).parents[4]


@pytest.mark.soak("slow")
def test_a_process_is_small_and_keeps_to_itself() -> None:
    minilm()
    used = embed_in_child(MODEL_CACHE)
    # Megabytes; 165 were measured.
    assert used < 260


@pytest.mark.soak("slow")
def test_an_empty_cache_is_filled_without_torch(tmp_path: Path) -> None:
    used = embed_in_child(tmp_path)
    # Megabytes; 340 were measured.
    assert used < 500


def embed_in_child(cache: Path) -> int:
    """Embed in a child that has no torch, connects nowhere and starts nothing but itself; return its megabytes."""
    code = (
        "import re, sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'sentence_transformers')))\n"
        "seen = []\n"
        "noted = ('os.fork', 'subprocess.Popen', 'socket.connect', 'socket.getaddrinfo')\n"
        # It tries a faster precision in a process of its own.
        "sys.addaudithook(lambda event, of: event in noted and of[0] != sys.executable and seen.append(event))\n"
        "from indexing.embedding.model_loading import load_embedder\n"
        "load_embedder(sys.argv[2], pathlib.Path(sys.argv[3])).embed_passages(['a'])\n"
        # Not getrusage: its peak begins with that of the process that forked this one.
        "status = pathlib.Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) // 1024)\n"
        "print('huggingface_hub' in sys.modules)\n"
        "print(seen)"
    )
    arguments = [sys.executable, "-c", code, str(_HOME), MINILM, str(cache)]
    child = subprocess.run(arguments, capture_output=True, check=True, text=True)
    used, *rest = child.stdout.split("\n")
    # No heavy library is loaded, and OpenVINO does not report on its user.
    assert rest[:2] == ["False", "[]"]
    return int(used)


def test_a_deadline_is_kept_between_batches() -> None:
    embedder = minilm()
    with pytest.raises(DeadlineExceededError):
        embedder.embed_queries(["word " * 200] * 200, Deadline.after(0.05))


def test_what_was_begun_in_time_is_not_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, whose vectors come when the deadline is over."""
    infer = Network.infer

    def late(network: Network, inputs: Iterable[Inputs]) -> Generator[Vectors]:
        found = list(infer(network, inputs))
        time_is_up.cancel()
        yield from found

    monkeypatch.setattr(Network, "infer", late)
    time_is_up = CancelToken()
    deadline = Deadline.after(3600, time_is_up)
    assert minilm().embed_queries(["annual leave"], deadline).shape == (1, 384)
    with pytest.raises(DeadlineExceededError):
        deadline.check()


def test_batches_are_alike_and_small() -> None:
    lengths = [256, 8, 256, 9, 256, 256, 256]
    # Four of 256 fill 1024 tokens, and short ones are not padded to the length of long ones.
    assert list(make_batches(lengths, 1024)) == [[1, 3], [0, 2, 4, 5], [6]]
    assert list(make_batches(lengths, 512)) == [[1, 3], [0, 2], [4, 5], [6]]
    assert [len(batch) for batch in make_batches([5] * 70, 1024)] == [32, 32, 6]
    assert list(make_batches([5000], 1024)) == [[0]]
    assert list(make_batches([], 1024)) == []


@pytest.mark.soak("slow")
def test_a_search_overtakes_what_needs_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads embed 20 texts of 200 words in batches of one each, and only one batch of them is queued at a time."""
    infer, guard = Network.infer, threading.Lock()
    under_way, most_under_way = 0, 0
    first_begun, searched = threading.Event(), threading.Event()

    def watched(network: Network, inputs: Iterable[Inputs]) -> Generator[Vectors]:
        nonlocal under_way, most_under_way
        if threading.current_thread() is threading.main_thread():
            yield from infer(network, inputs)
            return
        with guard:
            under_way += 1
            most_under_way = max(most_under_way, under_way)
        first_begun.set()
        assert searched.wait(60)
        yield from infer(network, inputs)
        with guard:
            under_way -= 1

    monkeypatch.setattr(Network, "infer", watched)
    embedder, texts = minilm(), ["word " * 200] * 20
    with ThreadPoolExecutor(2) as pool:
        checks = [pool.submit(embedder.embed_queries, texts, Deadline.after(60)) for _ in range(2)]
        assert first_begun.wait(60)
        assert embedder.embed_queries(["annual leave"], Deadline.after(60)).shape == (1, 384)
        searched.set()
        vectors = [check.result() for check in checks]
    assert most_under_way == 1
    alone = embedder.embed_passages(texts[:1])[0]
    for each in vectors:
        np.testing.assert_allclose(each, np.tile(alone, (20, 1)), atol=1e-3)


WIDTHS = (16, 8, 64, 8, 32, 8, 128, 8, 16, 8)


@pytest.fixture(scope="module")
def folder() -> Path:
    identity = minilm().identity
    folders = (file.parent for file in MODEL_CACHE.glob(f"*/{TOKENIZER_FILE}"))
    return next(
        folder
        for folder in folders
        if (record := read_record(folder)) and record.identity == identity
    )


@pytest.fixture(scope="module")
def network(folder: Path) -> Network:
    record = read_record(folder)
    assert record is not None
    return Network(folder, record.precision, 2)


def inputs() -> Iterator[Inputs]:
    """Of one text each, no two alike: a short one is done before a long one that was begun earlier."""
    for number, width in enumerate(WIDTHS):
        yield np.full((1, width), 2_000 + number, np.int64), np.ones((1, width), np.int64)


def test_outputs_are_those_of_each_input_alone_and_in_their_order(network: Network) -> None:
    alone = [next(network.infer([each])) for each in inputs()]
    together = list(network.infer(inputs()))
    assert len(together) == len(WIDTHS)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert len({one.tobytes() for one in together}) == len(WIDTHS)


def test_who_stops_reading_leaves_the_network_fit(network: Network) -> None:
    expected = [one.copy() for one in network.infer(inputs())]
    for taken in range(1, 6):
        outputs = network.infer(inputs())
        for number in range(taken):
            np.testing.assert_allclose(next(outputs), expected[number], atol=1e-5)
        outputs.close()
    for one, other in zip(network.infer(inputs()), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.soak("slow")
def test_threads_do_not_take_each_others_outputs(network: Network) -> None:
    expected = list(network.infer(inputs()))
    with ThreadPoolExecutor(4) as pool:
        of_all = list(pool.map(lambda _: list(network.infer(inputs())), range(12)))
    for outputs in of_all:
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_nothing_is_compiled_before_it_is_asked(tmp_path: Path) -> None:
    """A process that embeds nothing, such as one that reads sources, has no room for a network."""
    network = Network(tmp_path, "f32")
    assert list(network.infer([])) == []
    with pytest.raises(RuntimeError, match=r"model\.xml"):
        next(network.infer(inputs()))


def test_inputs_are_set_by_one_thread_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, overlaps = threading.Lock(), []

    class Request:
        def start_async(self, inputs: object) -> None:
            del inputs
            if not entered.acquire(blocking=False):
                overlaps.append(1)
                return
            time.sleep(0.05)
            entered.release()

        def wait(self) -> None: ...

        def get_output_tensor(self, index: int) -> SimpleNamespace:
            return SimpleNamespace(data=np.zeros((1, index + 1), np.float32))

    monkeypatch.setattr(Network, "_max_running", 2)
    monkeypatch.setattr(Network, "_take_request", lambda _: Request())
    network = Network(tmp_path, "f32")
    tokens = np.zeros((1, 1), np.int64)
    threads = [
        threading.Thread(target=lambda: list(network.infer([(tokens, tokens)]))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
