"""Only an SPDX expression is a licence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex_publisher.authoring.licence import check_licence


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("mit", "MIT"),
        ("Apache-2.0 OR MIT", "Apache-2.0 OR MIT"),
        (
            "GPL-2.0-only WITH Classpath-exception-2.0",
            "GPL-2.0-only WITH Classpath-exception-2.0",
        ),
        ("LicenseRef-Own", "LicenseRef-Own"),
    ],
)
def test_an_expression_is_written_as_the_lists_spell_it(text: str, same: str) -> None:
    assert check_licence(text) == same


@pytest.mark.parametrize(
    "text", ["", "Proprietary", "UNLICENSED", "MIT WITH MIT", "(MIT", "(" * 500, "MIT MIT"]
)
def test_another_text_is_no_licence(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an SPDX licence expression") as caught:
        check_licence(text)
    assert "LicenseRef-" in caught.value.fix


@given(st.text() | st.lists(st.sampled_from(["MIT", "(", ")", "OR", "WITH", "and"])).map(" ".join))
def test_what_is_accepted_is_accepted_again_as_it_is(text: str) -> None:
    try:
        made = check_licence(text)
    except InvalidInput:
        return
    assert check_licence(made) == made
