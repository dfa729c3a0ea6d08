"""Texts are embedded in batches of like length, within a deadline, by a small process."""

import subprocess
import sys
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from indexing.embedding.embedder import Vectors
from indexing.embedding.openvino_embedder import make_batches
from indexing.embedding.openvino_runtime import Inputs, Network
from indexing.runtime.deadline import CancelToken, Deadline, DeadlineExceededError
from tests.support.models import MINILM, MODEL_CACHE, minilm

_HOME = Path(__file__).parents[4]


def test_a_process_is_small_and_keeps_to_itself() -> None:
    minilm()
    used = embed_in_child(MODEL_CACHE)
    # Megabytes; 165 were measured.
    assert used < 260


def test_an_empty_cache_is_filled_without_torch(tmp_path: Path) -> None:
    used = embed_in_child(tmp_path)
    # Megabytes; 340 were measured.
    assert used < 500


def embed_in_child(cache: Path) -> int:
    """Embed in a child that has no torch, connects nowhere and starts nothing; return its megabytes."""
    code = (
        "import re, sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'sentence_transformers')))\n"
        "seen = []\n"
        "noted = ('os.fork', 'subprocess.Popen', 'socket.connect', 'socket.getaddrinfo')\n"
        "sys.addaudithook(lambda event, _: event in noted and seen.append(event))\n"
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
    assert list(make_batches(lengths)) == [[1, 3], [0, 2, 4, 5], [6]]
    assert [len(batch) for batch in make_batches([5] * 70)] == [32, 32, 6]
    assert list(make_batches([5000])) == [[0]]
    assert list(make_batches([])) == []
