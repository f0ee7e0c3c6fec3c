"""The Anvil of `capdex up`: which drafts of its state are kept, and that it is its own one."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from capdex.errors import Unavailable
from capdex_publisher.ethereum.anvil import keep_draft, run_anvil
from tests.conftest import Anvil


def test_a_draft_is_kept_only_when_its_end_is_written(tmp_path: Path) -> None:
    draft, state = tmp_path / "anvil.draft", tmp_path / "anvil.json"
    whole = json.dumps({"block": {"number": 1}, "blocks": [{}, {"a": {"b": "0x"}}]}).encode()
    for end in range(len(whole)):
        draft.write_bytes(whole[:end])
        assert keep_draft(draft, state) == 0.0
        assert not state.exists()
    draft.write_bytes(whole)
    assert keep_draft(draft, state) == draft.stat().st_mtime
    assert state.read_bytes() == whole


def test_a_large_draft_is_kept_without_many_times_its_size_of_memory(tmp_path: Path) -> None:
    draft, state = tmp_path / "anvil.draft", tmp_path / "anvil.json"
    draft.write_text(json.dumps({f"{x:#066x}": {"slot": [x]} for x in range(20_000)}))
    tracemalloc.start()
    try:
        assert keep_draft(draft, state)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * draft.stat().st_size


async def test_the_anvil_of_another_at_the_same_port_is_not_taken_for_its_own(
    anvil: Anvil, tmp_path: Path
) -> None:
    port, log = int(anvil.url.rsplit(":", 1)[1]), tmp_path / "anvil.log"
    with pytest.raises(Unavailable, match="ended at once") as ended:
        async with run_anvil(state=tmp_path / "anvil.json", port=port, log=log):
            pass
    assert "Address already in use" in ended.value.why
    assert ended.value.fix.startswith("run it again")
    assert not (tmp_path / "anvil.scratch").exists()
