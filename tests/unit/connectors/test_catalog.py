from pathlib import Path

import pytest

from connectors.catalog import KINDS, NoCredential, connect
from connectors.connector import Capability
from connectors.errors import AskTheOwner


def test_a_connector_is_built_from_stored_settings(tmp_path: Path) -> None:
    stored = KINDS["folder"].settings.model_validate({"path": tmp_path}).model_dump(mode="json")
    assert connect("folder", "kb", stored).source == "kb"


def test_every_kind_says_what_it_can_do() -> None:
    assert KINDS["folder"].capabilities == frozenset(Capability)
    assert KINDS["folder"].credential is NoCredential


@pytest.mark.parametrize(
    ("kind", "source", "settings", "says"),
    [
        ("fax", "kb", {}, "no kind of source is called 'fax'; there is: folder"),
        ("folder", "kb", {}, "settings of kb are not valid: path: Field required"),
        ("folder", "kb", {"path": "/kb", "exlude": []}, "exlude: Extra inputs"),
        ("folder", "kb", {"path": "/kb", "include": ["a**"]}, "include: .*stands alone"),
        ("folder", "kb", {"path": "/kb", "largest_file": 0}, "largest_file: "),
        ("folder", "k:b", {"path": "/kb"}, "cannot name a source"),
        ("folder", "", {"path": "/kb"}, "cannot name a source"),
    ],
)
def test_what_cannot_be_built_says_why(
    kind: str, source: str, settings: dict[str, object], says: str
) -> None:
    with pytest.raises(AskTheOwner, match=says):
        connect(kind, source, settings)
