"""Places for streams, in all and for each client."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from capdex.errors import Code, Unavailable
from capdex_service.limits.addresses import CLIENT
from capdex_service.limits.streams import StreamPlaces


def scope(client: str) -> Any:
    return {CLIENT: client}


def test_a_client_has_its_share_and_all_together_have_a_bound() -> None:
    places = StreamPlaces(3, 2)
    with ExitStack() as held:
        held.enter_context(places.take(scope("a")))
        with places.take(scope("a")):
            with pytest.raises(Unavailable) as refused, places.take(scope("a")):
                pass
            assert refused.value.code is Code.RATE_LIMITED
        held.enter_context(places.take(scope("a")))
        with places.take(scope("b")), pytest.raises(Unavailable), places.take(scope("c")):
            pass
    with places.take(scope("a")), places.take(scope("a")), places.take(scope("b")):
        pass


def test_this_machine_may_have_all_of_them() -> None:
    places = StreamPlaces(3, 1)
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(places.take({}))
        with pytest.raises(Unavailable), places.take({}):
            pass
