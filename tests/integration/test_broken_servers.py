"""Every case of the suite can fail: servers with one behaviour changed turn exactly these cases red.

After a change of cases `python -m tests.integration.test_broken_servers` runs all of them and writes `red_cases.json`
anew. Read the difference before you commit it: each line says which behaviour a case watches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.cases import all_cases
from conformance.tiny_model.files import write
from tests.broken_servers.everything import ALL_BROKEN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

EXPECTED = Path(__file__).parents[1] / "broken_servers" / "red_cases.json"
NAMES = [broken.name for broken in ALL_BROKEN]
AT_ONCE = 3 * (os.cpu_count() or 1)
"""A run mostly waits, so more of them than processors share the time."""

Runs = dict[str, "Future[list[str]]"]


def run_one(name: str, model: str) -> list[str]:
    """Run the whole suite against one broken server, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.broken_servers.run_one", name, model],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"
    red: list[str] = json.loads(done.stdout.splitlines()[-1])
    return red


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """All runs, started at once; each test waits for its own."""
    model = tmp_path_factory.mktemp("model")
    write(model)
    pool = ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(run_one, name, str(model)) for name in NAMES}
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(EXPECTED.read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_exactly_these_cases_turn_red(name: str, runs: Runs, expected: dict[str, list[str]]) -> None:
    assert runs[name].result(600) == expected[name]


def test_names_and_expectations_belong_together(expected: dict[str, list[str]]) -> None:
    assert list(expected) == NAMES
    assert len(set(NAMES)) == len(NAMES)


def test_each_family_of_cases_has_a_broken_server(expected: dict[str, list[str]]) -> None:
    families = {case.id.split("-")[0] for case in all_cases()}
    assert {broken.family for broken in ALL_BROKEN} == families
    for broken in ALL_BROKEN:
        assert any(case_id.startswith(f"{broken.family}-") for case_id in expected[broken.name]), broken.name


def test_every_case_is_turned_red_by_one(expected: dict[str, list[str]]) -> None:
    red = {case_id for ids in expected.values() for case_id in ids}
    assert sorted({case.id for case in all_cases()} - red) == []


def main() -> None:
    """Write the expectations anew."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            red = dict(zip(NAMES, pool.map(lambda name: run_one(name, folder), NAMES), strict=True))
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(ids)}" for name, ids in red.items())
    EXPECTED.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
