"""The licence of a package, as an SPDX expression."""

from __future__ import annotations

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from capdex.errors import InvalidInput
from capdex.manifest.metadata import MAX_WORD_CHARS


def check_licence(text: str) -> str:
    """Return an SPDX expression in the spelling of SPDX's lists (SPDX 3.0.1, Annex B).

    Raises InvalidInput for another text, and for one that does not fit the field.
    """
    try:
        if len(text) > MAX_WORD_CHARS:
            raise InvalidLicenseExpression(f"it has more than {MAX_WORD_CHARS} characters")
        return canonicalize_license_expression(text)
    except InvalidLicenseExpression as error:
        raise InvalidInput(
            f"{text[:MAX_WORD_CHARS]!r} is not an SPDX licence expression",
            why=str(error),
            fix="write one such as MIT or Apache-2.0 OR MIT, or LicenseRef-NAME for your own terms",
        ) from None
