"""Texts to vectors: the Embedder protocol, its implementations, and the tokenizers of models."""

import sys

# On import OpenVINO reports its use over the network, from a forked process. A module that is None
# cannot be imported, and without this one it keeps quiet.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
