"""The audit log: a chain that several processes write, and that shows what was changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.runtime.audit import MAX_LINE_BYTES, Audit, Report, verify


def written(path: Path, count: int = 3) -> Path:
    log = path / "audit.jsonl"
    with Audit(log) as audit:
        for number in range(count):
            audit.write("call", number=number)
    return log


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert verify(tmp_path / "audit.jsonl") == Report(0)


def test_the_chain_holds_over_processes_and_starts(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    one, other = Audit(log), Audit(log)
    one.write("call", by=1)
    other.write("call", by=2)
    one.write("call", by=1)
    one.close()
    other.close()
    assert verify(written(tmp_path)) == Report(6)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_changed_line_is_found_by_the_next(tmp_path: Path, line: int) -> None:
    log = written(tmp_path, 4)
    lines = log.read_bytes().split(b"\n")
    lines[line - 1] = lines[line - 1].replace(b'"number"', b'"humber"')
    log.write_bytes(b"\n".join(lines))
    assert verify(log).broken == line + 1


@pytest.mark.parametrize("line", [1, 2])
def test_a_line_that_was_taken_out_is_found(tmp_path: Path, line: int) -> None:
    log = written(tmp_path)
    lines = log.read_bytes().split(b"\n")
    del lines[line - 1]
    log.write_bytes(b"\n".join(lines))
    assert verify(log).broken == line


@given(st.integers(1, 200))
def test_a_crash_within_a_line_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    log = written(tmp_path_factory.mktemp("audit"))
    size = log.stat().st_size
    last = len(log.read_bytes().splitlines()[-1])
    os.truncate(log, size - min(cut, last))
    with Audit(log) as audit:
        audit.write("call", number=3)
    assert verify(log).broken is None


def test_a_long_line_is_cut_to_what_it_was(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    with Audit(log) as audit:
        audit.write("call", text="a" * MAX_LINE_BYTES)
        audit.write("call")
    assert orjson.loads(log.read_bytes().splitlines()[0])["cut"] > MAX_LINE_BYTES
    assert verify(log) == Report(2)


@given(st.binary())
def test_any_bytes_are_judged(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    log = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    log.write_bytes(data)
    assert verify(log).lines >= 0
