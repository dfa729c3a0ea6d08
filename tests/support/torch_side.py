"""Asks sentence-transformers for its vectors in a child process: tests never import torch."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from indexing.embedding.model_loading import load_embedder
from indexing.runtime.deadline import Deadline
from tests.support.tiny_transformers import TinyModel, write_tiny_model

_HOME = Path(__file__).parents[2]
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from tests.support.torch_side import main; main(sys.stdin.read())"
)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Ask the library itself in a child process.

    Args:
        request: `written`: tiny models to write, and where; `reference`: folders and texts to embed;
            `served`: a model that OpenVINO does not run, a cache and texts for our own embedder.
    """
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CHILD, str(_HOME)],
        input=json.dumps(request),
        capture_output=True,
        check=False,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    answer: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return answer


def main(text: str) -> None:
    request = json.loads(text)
    for model in request.get("written", []):
        write_tiny_model(TinyModel(**model["model"]), Path(model["home"]))
    answer: dict[str, Any] = {"reference": [_reference(**each) for each in request["reference"]]}
    if "served" in request:
        answer["served"] = _served(**request["served"])
    print(json.dumps(answer))


def _reference(folder: str, texts: list[str]) -> dict[str, Any]:
    import torch  # noqa: PLC0415
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415

    # Threads that wait for one another are slow where others use the cores.
    torch.set_num_threads(1)
    model = SentenceTransformer(
        folder, device="cpu", local_files_only=True, model_kwargs={"dtype": "float32"}
    )
    # One text at a time: without padding, which must not count where there is some.
    options: dict[str, Any] = {"normalize_embeddings": True, "batch_size": 1}
    return {
        "queries": model.encode_query(texts, **options).tolist(),
        "passages": model.encode_document(texts, **options).tolist(),
    }


def _served(model: str, cache: str, texts: list[str]) -> dict[str, Any]:
    embedder = load_embedder(model, Path(cache))
    return {
        "class": type(embedder).__name__,
        "dimension": embedder.identity.dimension,
        "counts": embedder.count_tokens(texts),
        "ends": [list(embedder.token_ends(text)) for text in texts],
        "queries": embedder.embed_queries(texts, Deadline.after(60)).tolist(),
        "passages": embedder.embed_passages(texts).tolist(),
        "none": list(embedder.embed_passages([]).shape),
    }
