"""What a doctor says of a cluster, of an identity provider, and of calculations."""

from contextlib import closing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from backend.cli.doctor import check_calculations, check_cluster, check_provider
from backend.research.calculations import preparation
from backend.research.calculations.sandbox import CalculationSandbox, FailedCalculation
from connectors.errors import NotConfiguredError
from indexing.opensearch.cluster_health import ClusterHealth, DiskUsage, IndexStatus
from tests.support.calculations import prepared_sandbox
from tests.support.openid_provider import connect, openid_provider

WELL = ClusterHealth(
    version="2.19.1",
    status="green",
    nodes=1,
    unassigned_shards=0,
    disks=(DiskUsage(node="one", free_bytes=50_000_000_000, used=0.5),),
    watermarks=(("low", "85%"), ("high", "90%"), ("flood_stage", "95%")),
    without_knn=(),
    blocked=(),
    indexes=(IndexStatus(name="quarry-m", status="green", records=1_200, bytes=3_400_000),),
)


def test_a_cluster_that_is_well() -> None:
    faults = check_cluster(WELL)
    assert (faults.state, faults.advice) == ("ok", None)
    assert faults.detail == (
        "version 2.19.1, green, 1 nodes; disks: one 50 GB free (50% used);"
        " watermarks: low 85%, high 90%, flood_stage 95%;"
        " indexes: quarry-m (green, 1,200 records, 3 MB)"
    )


def test_what_is_missing_is_said_with_what_to_do() -> None:
    faults = check_cluster(
        replace(
            WELL, version="2.9.0", without_knn=("one", "two"), status="red", blocked=("quarry-m",)
        )
    )
    assert faults.state == "failed"
    assert faults.advice is not None
    for part in (
        "2.17 or newer",
        "opensearch-knn on: one, two",
        "missing",
        "quarry-m is read-only",
    ):
        assert part in faults.advice


def test_what_will_go_wrong_is_a_warning() -> None:
    disks = (replace(WELL.disks[0], used=0.85), replace(WELL.disks[0], node="two", used=0.84))
    faults = check_cluster(replace(WELL, status="yellow", unassigned_shards=3, disks=disks))
    assert faults.state == "warning"
    assert faults.advice is not None
    assert "3 copies of shards" in faults.advice
    assert "nearly full: one;" in faults.advice


def test_two_digit_versions_are_compared_as_numbers() -> None:
    assert replace(WELL, version="2.9.0").is_too_old
    assert not replace(WELL, version="2.17.0").is_too_old
    assert not replace(WELL, version="10.0.0-SNAPSHOT").is_too_old


def test_an_identity_provider_that_responds() -> None:
    with openid_provider() as server:
        with closing(connect(server, domains=frozenset({"example.com"}))) as provider:
            check = check_provider(provider)
        assert (check.state, check.advice) == ("ok", None)
        assert check.detail == f"{server.issuer} responds; it verifies addresses of example.com"
        with closing(connect(server)) as provider:
            check = check_provider(provider)
        assert (check.state, check.advice is not None) == ("warning", True)


def test_an_identity_provider_of_another_name_is_not_well() -> None:
    with openid_provider() as server:
        server.metadata = {"issuer": "https://other.example.com"}
        with closing(connect(server)) as provider, pytest.raises(NotConfiguredError, match="calls"):
            check_provider(provider)


@pytest.mark.soak("slow")
def test_a_sandbox_is_tried_where_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_calculations(prepared_sandbox()).state == "ok"
    unbuilt = check_calculations(CalculationSandbox(tmp_path))
    assert unbuilt.state == "ok"
    assert "is built when the first one is asked for" in unbuilt.detail
    assert list(tmp_path.iterdir()) == []
    failed = FailedCalculation("", "it takes too long")
    monkeypatch.setattr(CalculationSandbox, "run_calculation", lambda *_: failed)
    check = check_calculations(prepared_sandbox())
    assert (check.state, check.detail) == ("failed", "it takes too long")


def test_why_there_are_no_calculations_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(preparation, "version", find_none)
    preparation.name_version.cache_clear()
    check = check_calculations(CalculationSandbox(tmp_path))
    monkeypatch.undo()
    preparation.name_version.cache_clear()
    assert check.state == "off"
    assert check.advice is not None
    assert "pip install 'quarry-search[calculations]'" in check.advice
