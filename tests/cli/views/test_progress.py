"""The steps of a transaction as people read them."""

from __future__ import annotations

import pytest

from capdex_cli.terminal.app import App
from capdex_cli.views.progress import Progress
from capdex_publisher.ethereum.transaction import Sent, Transaction

ADDRESS = "0x" + "11" * 20
LOST, NEW = "0x" + "22" * 32, "0x" + "33" * 32
TRANSACTION = Transaction(1, ADDRESS, ADDRESS, "0x", 1, 1, 1, 1)


@pytest.mark.parametrize("new", [LOST, NEW])
def test_what_is_sent_again_as_it_was_is_not_said_to_replace_itself(
    new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Progress(App(), "mined", dry_run=False)(Sent(new, 0, TRANSACTION, earlier=(LOST,)))
    said = capsys.readouterr().err
    assert "sent again" in said
    assert ("instead of" in said) == (new != LOST)
