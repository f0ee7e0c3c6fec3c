"""The file of bearer tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from capdex.errors import Code, UsageError
from capdex_service.limits.tokens import Tokens

PLAIN, OTHER = "0123456789abcdef", "a-token_with.all~signs+/=="
HASHED = hashlib.sha256(OTHER.encode()).hexdigest()


def written(folder: Path, text: str) -> Path:
    path = folder / "tokens"
    path.write_text(text, "utf-8")
    return path


def test_tokens_are_known_by_name_plain_or_hashed(tmp_path: Path) -> None:
    text = f"# of our routers\n\nrouter-1 {PLAIN}\n  router-2\tsha256:{HASHED}\n"
    tokens = Tokens.read(written(tmp_path, text))
    assert tokens.name_of(PLAIN.encode()) == "router-1"
    assert tokens.name_of(OTHER.encode()) == "router-2"
    for unknown in (b"", PLAIN[:-1].encode(), f"sha256:{HASHED}".encode(), b"\xff" * 16):
        assert tokens.name_of(unknown) is None


@pytest.mark.parametrize(
    "line",
    [
        PLAIN,
        f"name {PLAIN} more",
        "name short",
        "name sha256:beef",
        f"name {PLAIN}\u00e9",
        "a b c d",
    ],
)
def test_a_wrong_line_is_named_by_its_number_and_not_shown(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, f"good {PLAIN}\n{line}\n")
    with pytest.raises(UsageError) as refused:
        Tokens.read(path)
    assert refused.value.code is Code.CONFIG
    assert refused.value.message.startswith(f"{path}:2 ")
    assert PLAIN not in str(refused.value.to_json())


def test_a_file_without_tokens_or_no_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as empty:
        Tokens.read(written(tmp_path, "# none\n"))
    with pytest.raises(UsageError) as absent:
        Tokens.read(tmp_path / "absent")
    assert (empty.value.code, absent.value.code) == (Code.CONFIG, Code.UNREADABLE)
