"""What clients and the log are told of an error that is the operator's."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.net.log_lines import RareLines
from capdex_service.answers import errors


def test_a_database_that_is_away_is_one_line_of_the_log_a_minute(monkeypatch: Any) -> None:
    now = [0.0]
    monkeypatch.setattr(errors, "_lines", RareLines(lambda: now[0]))
    away = Unavailable("no server", Code.DATABASE_UNAVAILABLE, why="connection refused")
    with capture_logs() as lines:
        for second in range(90):
            now[0] = float(second)
            assert errors.public_error(away).message == "the node cannot read its index now"
        errors.public_error(Unavailable("no endpoint", Code.RPC_UNAVAILABLE))
    assert [(x["code"], x["why"]) for x in lines] == [
        ("DATABASE_UNAVAILABLE", "connection refused"),
        ("DATABASE_UNAVAILABLE", "connection refused"),
        ("RPC_UNAVAILABLE", ""),
    ]


@pytest.mark.parametrize("error", [InvalidInput("no"), Unavailable("no", Code.TIMEOUT)])
def test_an_error_for_the_client_is_no_line_of_the_log(error: Any) -> None:
    with capture_logs() as lines:
        assert errors.public_error(error) is error
    assert lines == []
