"""The audit log: a chain that several processes write, and that shows what was changed."""

from __future__ import annotations

import hashlib
import os
import resource
import stat
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import UsageError
from capdex_router.home.audit_log import MAX_LINE_BYTES, AuditLog, Report, tail, verify


def written(path: Path, count: int = 3) -> Path:
    log = path / "audit.jsonl"
    with AuditLog(log) as audit:
        for number in range(count):
            audit.write("call", number=number)
    return log


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert verify(tmp_path / "audit.jsonl") == Report(0)


def test_a_log_that_cannot_be_opened_is_a_typed_error(tmp_path: Path) -> None:
    for use in (lambda path: AuditLog(path).check(), verify, lambda path: tail(path, 1)):
        with pytest.raises(UsageError) as caught:
            use(tmp_path)
        assert caught.value.fix


def test_the_chain_holds_over_processes_and_starts(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    one, other = AuditLog(log), AuditLog(log)
    one.write("call", by=1)
    other.write("call", by=2)
    one.write("call", by=1)
    one.close()
    other.close()
    assert verify(written(tmp_path)) == Report(6)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("moved", [True, False])
def test_a_log_that_is_moved_away_or_removed_is_begun_anew(tmp_path: Path, moved: bool) -> None:
    log = tmp_path / "audit.jsonl"
    with AuditLog(log) as one, AuditLog(log) as other:
        one.write("call", number=1)
        if moved:
            log.rename(tmp_path / "old.jsonl")
        else:
            log.unlink()
        one.write("call", number=2)
        other.write("call", number=3)
        one.write("call", number=4)
    assert [line["number"] for line in tail(log, 9)] == [2, 3, 4]
    assert verify(log) == Report(3)
    assert verify(tmp_path / "old.jsonl") == Report(int(moved))


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


def test_a_line_without_room_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    log = written(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with AuditLog(log) as audit:
        audit.write("call", number=3)
        whole = log.read_bytes()
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, limits[1]))
        try:
            with pytest.raises(UsageError, match="cannot be written"):
                audit.write("call", number=4)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert log.read_bytes() == whole
        audit.write("call", number=5)
    assert verify(log) == Report(5)
    assert [entry["number"] for entry in tail(log, 2)] == [3, 5]


@given(st.integers(1, 200))
def test_a_crash_within_a_line_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    log = written(tmp_path_factory.mktemp("audit"))
    size = log.stat().st_size
    last = len(log.read_bytes().splitlines()[-1])
    os.truncate(log, size - min(cut, last))
    with AuditLog(log) as audit:
        audit.write("call", number=3)
    assert verify(log).broken is None


def test_of_a_long_line_the_long_field_alone_is_shortened(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    touches = ["run 'grep' " + "\\x01" * 40_000, "run 'wc'"]
    kept = {
        "call": "aa",
        "capability_id": "\x01" * 256,
        "digest": "d" * 64,
        "input_sha256": "e" * 64,
    }
    with AuditLog(log) as audit:
        audit.write("call", **kept, touches=touches, consent="asked", ok=False, code="TIMEOUT")
        audit.write("call", touches=["run 'wc'"])
    long, short = tail(log, 2)
    data = orjson.dumps(touches)
    assert long | kept | {"consent": "asked", "ok": False, "code": "TIMEOUT"} == long
    assert long["touches"].pop("start") == data[:512].decode()
    assert long["touches"] == {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "items": 2,
    }
    assert short["touches"] == ["run 'wc'"]
    assert verify(log) == Report(2)


FIELDS = st.one_of(
    st.text(st.characters(codec="utf-8")), st.sampled_from(["\x01", '"', "\\", "日"])
).flatmap(lambda text: st.integers(0, 70_000).map(lambda size: text * (size // max(1, len(text)))))


@given(st.lists(FIELDS, max_size=24), st.integers(0, 64))
def test_every_line_fits_and_the_chain_holds(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], parts: int
) -> None:
    log = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    with AuditLog(log) as audit:
        audit.write("call", **{f"f{n}": [x] * parts or x for n, x in enumerate(values)}, code="OK")
        audit.write("call")
    assert max(map(len, log.read_bytes().splitlines())) <= MAX_LINE_BYTES
    assert tail(log, 2)[0]["code"] == "OK"
    assert verify(log) == Report(2)


@given(st.binary())
def test_any_bytes_are_judged(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    log = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    log.write_bytes(data)
    assert verify(log).lines >= 0
