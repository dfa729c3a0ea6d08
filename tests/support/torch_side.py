"""What sentence-transformers says, asked in a process of its own: torch never enters the tests'."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from indexing.embedding.sentence_transformers_model import load_embedder
from indexing.runtime.deadline import Deadline

_HOME = Path(__file__).parents[2]
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from tests.support.torch_side import main; main(sys.argv[2])"
)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Vectors of `reference` (folders and texts) by the library itself; and of `served` (a model
    that OpenVINO does not run, a cache, texts) all that our Embedder says."""
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CHILD, str(_HOME), json.dumps(request)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer


def main(text: str) -> None:
    request = json.loads(text)
    answer = {
        "reference": [_reference(**each) for each in request["reference"]],
        "served": _served(**request["served"]),
    }
    print(json.dumps(answer))


def _reference(folder: str, texts: list[str]) -> dict[str, Any]:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    return {
        "queries": model.encode_query(texts, normalize_embeddings=True).tolist(),
        "passages": model.encode_document(texts, normalize_embeddings=True).tolist(),
    }


def _served(model: str, cache: str, texts: list[str]) -> dict[str, Any]:
    embedder = load_embedder(model, Path(cache))
    return {
        "class": type(embedder).__name__,
        "dimension": embedder.identity.dimension,
        "counts": embedder.count_tokens(texts),
        "ends": [embedder.token_ends(text) for text in texts],
        "queries": embedder.embed_queries(texts, Deadline.after(60)).tolist(),
        "passages": embedder.embed_passages(texts).tolist(),
        "none": list(embedder.embed_passages([]).shape),
    }
