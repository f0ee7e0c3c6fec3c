"""Rows of logs: what a log says by itself, the same by column as event by event."""

from __future__ import annotations

from typing import Any

from eth_abi import encode
from hypothesis import example, given
from hypothesis import strategies as st

from capdex.encoding.keccak import keccak
from capdex.ipld.cid import Cid
from capdex.registry.events import PUBLISHED, Published, decode
from capdex.registry.logs import LogColumns, LogHead, LogPosition, RawLog
from capdex_indexer.projection import event_rows as rows
from capdex_indexer.projection.block_range import LogRows

TYPES = ["uint64", "string", "string", "string", "bytes32"]
DIGEST = bytes(range(32))
SOUND = {
    "name": "note",
    "cap_uri": "did:nuwa:cap:note@1.0.0",
    "semver": "1.0.0",
    "cid": Cid.raw(DIGEST).text,
    "sha256": DIGEST,
}
OTHER: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["note", "notes", "Note", ""]),
    "cap_uri": st.sampled_from(
        [
            *(
                "did:nuwa:cap:note@1.0.0",
                "did:nuwa:cap:note@1.0.1",
                "did:nuwa:cap:note",
                "note@1.0.0",
            ),
            *(
                "did:nuwa:cap:Note@1.0.0",
                "did:nuwa:cap:note@1.0.0@1.0.0",
                "did:nuwa:cap:note@^1.0.0",
            ),
            *("did:nuwa:cap:@1.0.0", "did:nuwa:cap:note@", "did:nuwa:cap:note@v1.0.0", ""),
        ]
    ),
    "semver": st.sampled_from(["1.0.0", "1.0.1", "v1.0.0", "1.0.0-rc.1", "^1.0.0", "", "@1.0.0"]),
    "cid": st.one_of(
        st.sampled_from([Cid.raw(bytes(32)).text, Cid.raw(DIGEST).text.upper(), ""]),
        st.just(Cid.from_bytes(b"\x12\x20" + DIGEST).text),
    ),
    "sha256": st.binary(min_size=32, max_size=32),
}


def publication(said: dict[str, Any], at: int = 0) -> RawLog:
    values = [at + 1, said["cap_uri"], said["semver"], said["cid"], said["sha256"]]
    topics = (PUBLISHED, keccak(said["name"].encode()), bytes(12) + b"\x11" * 20)
    where = LogPosition(7, b"\x07" * 32, at.to_bytes(32, "big"), at)
    return RawLog(b"\x22" * 20, topics, encode(TYPES, values), where)


@given(st.fixed_dictionaries({}, optional=OTHER))
@example({})
@example({"cap_uri": "did:nuwa:cap:note@1.0.0-rc.1", "semver": "1.0.0-rc.1"})
def test_a_release_is_drafted_as_its_event_has_it_or_left_to_its_event(
    lies: dict[str, Any],
) -> None:
    log = publication(SOUND | lies)
    (release,) = LogRows.of([log]).releases
    event = decode(log, 31337)
    assert isinstance(event, Published)
    claim = rows.claim(event)
    if release is not None:
        assert (1, *release, *rows.queued(5.0).values()) == rows.release_row(claim, 1, 5.0)
    else:  # nothing raw and sound is left out: that is the way of nearly all
        assert claim.rejected is not None or not event.announcement.cid.startswith("b")


logs = st.builds(
    RawLog,
    st.binary(min_size=20, max_size=20),
    st.lists(st.sampled_from([PUBLISHED, bytes(32), b"\x01" * 32]), max_size=4).map(tuple),
    st.one_of(st.binary(max_size=700), st.just(publication(SOUND).data)),
    st.builds(
        LogPosition, st.integers(0, 9), st.just(bytes(32)), st.just(bytes(32)), st.integers(0)
    ),
)


@given(st.lists(logs, max_size=6), st.lists(logs, max_size=3))
def test_columns_hold_the_logs_they_are_made_of(some: list[RawLog], more: list[RawLog]) -> None:
    whole = LogRows.of(some) + LogRows.of(more)
    assert list(whole.logs) == some + more
    assert whole == LogRows.of(some + more)
    assert len(whole) == len(whole.logs) == len(some) + len(more)
    assert LogColumns.of(whole.logs) == whole.logs
    head, heads = LogHead(), []
    for log in some + more:
        head = head.fold(log)
        heads.append(head)
    assert LogHead().through(whole.entries) == heads
