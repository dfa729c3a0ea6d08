"""Outputs come in the order of inputs, however many are computed at once and whoever stops reading them."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from indexing.embedding.openvino_embedder import read_record
from indexing.embedding.openvino_runtime import Inputs, Network, Purpose
from indexing.embedding.tokenizer_file import TOKENIZER_FILE
from tests.support.models import MODEL_CACHE, minilm

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


@pytest.fixture(params=["LATENCY", "THROUGHPUT"], scope="module")
def network(folder: Path, request: pytest.FixtureRequest) -> Network:
    purpose: Purpose = request.param
    record = read_record(folder)
    assert record is not None
    return Network(folder, record.precision, purpose, 2)


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


def test_threads_do_not_take_each_others_outputs(network: Network) -> None:
    expected = list(network.infer(inputs()))
    with ThreadPoolExecutor(4) as pool:
        of_all = list(pool.map(lambda _: list(network.infer(inputs())), range(12)))
    for outputs in of_all:
        for one, other in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_nothing_is_compiled_before_it_is_asked(tmp_path: Path) -> None:
    """A process that embeds nothing, such as one that reads sources, has no room for a network."""
    network = Network(tmp_path, "f32", "LATENCY")
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
    network = Network(tmp_path, "f32", "THROUGHPUT")
    tokens = np.zeros((1, 1), np.int64)
    threads = [
        threading.Thread(target=lambda: list(network.infer([(tokens, tokens)]))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert overlaps == []
