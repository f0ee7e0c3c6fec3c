"""Read the fields of one mapping; wrong types, long values and unknown names are reported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from capdex.diagnostics import TYPE_NAMES, Findings, Path, show, type_name
from capdex.problems import Reason

MAX_UNKNOWN = 20  # unknown fields reported a mapping; comparing names costs time
# A field of somebody else than the format, such as `x-acme-team` (P10a).
EXTENSION: Final = re.compile(r"x(?:-[a-z0-9]+){2,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of the mapping at `path`. A null counts as absent."""

    values: dict[str, Any]
    path: Path
    findings: Findings
    code: Reason = Reason.BAD_VALUE  # for values that are of the right type but not allowed
    absent: str = ""  # what to do about a required field that is missing, if not to write it

    @classmethod
    def of(
        cls,
        value: object,
        path: Path,
        findings: Findings,
        code: Reason = Reason.BAD_VALUE,
        *,
        hint: str = "",
    ) -> Fields | None:
        """The fields of `value`, or None and a problem when it is not a mapping."""
        if isinstance(value, dict):
            return cls(value, path, findings, code)
        message = f"this is {type_name(value)}; a mapping belongs here"
        findings.error(Reason.WRONG_TYPE, path, message, hint=hint)
        return None

    def at(self, name: str) -> Path:
        """The path of one field."""
        return (*self.path, name)

    def wrong(self, name: str, message: str, *, hint: str = "") -> None:
        """Report a value that is not allowed."""
        self.findings.error(self.code, self.at(name), message, hint=hint)

    def one_of(self, name: str, word: str, known: Iterable[str], what: str) -> bool:
        """True if a word is one of those known; otherwise a problem is reported."""
        if word in known:
            return True
        message = f"{show(word)} is not {what}; there are {', '.join(known)}"
        self.wrong(name, message, hint=self.findings.suggest(word, known))
        return False

    def get(self, name: str, wanted: type, *, required: bool = False) -> Any:
        """The value of a field if it has the type `wanted`; None (and a problem) if not."""
        value = self.values.get(name)
        if value is None:
            if required:
                message = f"{name} is missing" if name not in self.values else f"{name} is empty"
                self.findings.error(Reason.MISSING_FIELD, self.at(name), message, self.absent)
            return None
        if type(value) is wanted:
            return value
        self.findings.error(
            Reason.WRONG_TYPE,
            self.at(name),
            f"{name} is {type_name(value)}; {TYPE_NAMES[wanted]} belongs here",
            hint="put it in quotes" if wanted is str and type(value) in (int, float, bool) else "",
        )
        return None

    def mapping(
        self, name: str, code: Reason = Reason.BAD_VALUE, *, required: bool = False
    ) -> Fields | None:
        """The fields of a field that is a mapping; None (and a problem) as in `get`."""
        value = self.get(name, dict, required=required)
        return None if value is None else Fields(value, self.at(name), self.findings, code)

    def text(
        self,
        name: str,
        *,
        required: bool = False,
        most_chars: int = 0,
        most_bytes: int = 0,
        one_line: bool = False,
    ) -> str | None:
        """A text field that is not blank and not longer than allowed (0: no limit)."""
        value: str | None = self.get(name, str, required=required)
        if value is None:
            return None
        if not required and not value.strip():
            self.findings.note(
                self.code, self.at(name), f"{name} is empty, and so counts as absent"
            )
            return None
        return value if self.fits(name, value, most_chars, most_bytes, one_line) else None

    def fits(
        self,
        name: str,
        value: str,
        most_chars: int = 0,
        most_bytes: int = 0,
        one_line: bool = False,
        path: Path | None = None,
    ) -> bool:
        """True if a text is within its limits; otherwise a problem is reported."""
        at = path or self.at(name)
        if not value.strip():
            self.findings.error(self.code, at, f"{name} is empty")
        elif most_chars and len(value) > most_chars:
            message = f"{name} has {len(value)} characters; at most {most_chars} are allowed"
            self.findings.error(Reason.TOO_LARGE, at, message)
        elif most_bytes and len(value.encode()) > most_bytes:
            message = f"{name} has {len(value.encode())} bytes; at most {most_bytes} are allowed"
            self.findings.error(Reason.TOO_LARGE, at, message)
        elif one_line and "\n" in value.strip("\n"):
            self.findings.error(self.code, at, f"{name} goes over more than one line")
        else:
            return True
        return False

    def items(self, name: str, most: int) -> list[Any]:
        """A list field of at most `most` items; longer lists are cut, with a problem."""
        value: list[Any] | None = self.get(name, list)
        if value is None:
            return []
        if len(value) > most:
            message = f"{name} has {len(value)} items; at most {most} are allowed"
            self.findings.error(Reason.TOO_MANY, self.at(name), message)
        return value[:most]

    def texts(self, name: str, *, most: int, most_chars: int) -> tuple[str, ...]:
        """A list of single-line texts."""
        return tuple(self.placed_texts(name, most=most, most_chars=most_chars).values())

    def placed_texts(self, name: str, *, most: int, most_chars: int) -> dict[Path, str]:
        """A list of single-line texts, each under its path."""
        texts = {}
        for i, value in enumerate(self.items(name, most)):
            path = (*self.at(name), i)
            if not isinstance(value, str):
                message = f"this is {type_name(value)}; text belongs here"
                hint = "put it in quotes" if isinstance(value, int | float) else ""
                self.findings.error(Reason.WRONG_TYPE, path, message, hint=hint)
            elif self.fits(f"an item of {name}", value, most_chars, one_line=True, path=path):
                texts[path] = value
        return texts

    def note_unknown(self, known: Iterable[str]) -> None:
        """Note every field that the format does not know; they are kept, as `x-…` fields are."""
        names = list(known)
        unknown = [x for x in self.values if x not in names and not EXTENSION.fullmatch(x)]
        for name in unknown[:MAX_UNKNOWN]:
            hint = self.findings.suggest(name, [x for x in names if x not in self.values])
            message = f"the field {show(name)} is unknown; it is kept as it is"
            self.findings.note(Reason.UNKNOWN_FIELD, self.at(name), message, hint=hint)
        if len(unknown) > MAX_UNKNOWN:
            message = f"{len(unknown) - MAX_UNKNOWN} more fields are unknown"
            self.findings.note(Reason.UNKNOWN_FIELD, self.path, message)
