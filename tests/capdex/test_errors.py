"""One table of errors and one of reasons, complete and the same on every face (P16)."""

import pickle
import re
import traceback
from collections.abc import Callable
from dataclasses import replace

import pytest

from capdex.codes import error_codes, reason_codes
from capdex.errors import (
    CapdexError,
    Code,
    InvalidInput,
    Refused,
    Unavailable,
    UsageError,
    VerificationFailure,
)
from capdex.manifest.tools import BUILT_IN
from capdex.problems import Problem, Reason

FAMILIES = [InvalidInput, UsageError, VerificationFailure, Refused, Unavailable]
CAP_CODES = {"NOT_FOUND", "INVALID_INPUT", "PERMISSION_DENIED", "EXECUTION_FAILED", "TIMEOUT"}


def test_every_code_has_its_row() -> None:
    assert set(error_codes()) == set(Code)


@pytest.mark.parametrize("code", list(Code))
def test_every_row_speaks_the_words_of_each_face(code: Code) -> None:
    kind = error_codes()[code]
    assert kind.cap in CAP_CODES
    assert 400 <= kind.http < 600
    assert kind.exit in (0, 1, 2, 3, 4, 6, 70)
    assert kind.meaning
    # What may be tried again says so to a script, too: 3, or 6 for what is done and not served yet.
    assert kind.retryable == (kind.exit in (3, 6))


def test_the_rows_of_the_protocol_are_as_written_down() -> None:
    written = {
        "NOT_FOUND": (404, False), "YANKED": (404, False), "INVALID_INPUT": (400, False),
        "UNVERIFIED": (422, False), "PENDING": (503, True), "UNAUTHENTICATED": (401, False),
        "PERMISSION_DENIED": (403, False), "TOO_LARGE": (413, False), "RATE_LIMITED": (429, True),
        "STALLED": (503, True), "TIMEOUT": (504, True),
    }  # fmt: skip
    assert {
        c: (error_codes()[Code(c)].http, error_codes()[Code(c)].retryable) for c in written
    } == written


def test_every_reason_has_a_meaning_and_a_hint() -> None:
    assert [*reason_codes()] == [*Reason]
    assert all(text.meaning and text.hint for text in reason_codes().values())


def test_the_state_verbs_of_examples_are_those_that_there_are() -> None:
    examples = [text.example for text in reason_codes().values()]
    named = {verb for text in examples for verb in re.findall(r"state\.[a-z]+", text)}
    assert named
    assert named <= {*BUILT_IN}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_error_crosses_a_process_border_whole(family: Callable[..., CapdexError]) -> None:
    error = family("what", why="why", fix="fix", details={"reason": "BAD_CID"})
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is family
    assert (copy.message, copy.code, copy.why, copy.fix, copy.details) == (
        error.message,
        error.code,
        error.why,
        error.fix,
        error.details,
    )
    assert str(copy) == "what"


def test_an_error_is_shown_with_its_code_and_whether_to_try_again() -> None:
    error = Unavailable("the endpoint is down", Code.RPC_UNAVAILABLE, fix="start it")
    assert error.to_json() == {
        "code": "RPC_UNAVAILABLE",
        "message": "the endpoint is down",
        "retryable": True,
        "details": {"fix": "start it"},
    }


def test_a_traceback_shows_the_cause_of_an_error_and_what_to_do() -> None:
    error = InvalidInput("no such file", why="the folder is empty", fix="name another one")
    shown = "".join(traceback.format_exception(replace(error, fix="name a file")))
    assert shown.endswith("no such file\nthe folder is empty\nname a file\n")


def test_the_base_error_is_never_raised_itself() -> None:
    with pytest.raises(TypeError):
        CapdexError("what", Code.INTERNAL)


def test_a_bad_call_is_an_invalid_input() -> None:
    assert issubclass(UsageError, InvalidInput)
    assert UsageError("what").kind.exit == 2


def test_a_problem_without_a_hint_shows_the_one_of_its_reason() -> None:
    problem = Problem(Reason.BAD_ID, "metadata.id", "what")
    assert problem.to_json()["hint"] == reason_codes()[Reason.BAD_ID].hint


def test_an_error_as_json_says_why_and_what_to_do_where_there_is_something_to_say() -> None:
    bare, full = InvalidInput("what").to_json(), InvalidInput("what", why="a", fix="b").to_json()
    assert bare == {
        "code": "INVALID_INPUT",
        "message": "what",
        "retryable": False,
        "details": {},
    }
    assert full == bare | {"details": {"why": "a", "fix": "b"}}
    given = InvalidInput("what", why="a", details={"why": "said by the caller", "n": 1}).to_json()
    assert given["details"] == {"why": "said by the caller", "n": 1}
