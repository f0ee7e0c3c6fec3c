"""The session stack, as a state machine beside a list."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from capdex.errors import ExecutionFailed
from capdex.json import Json
from capdex_router.model.refs import InvokeResult
from capdex_router.routing.stack import IDLE_S, MAX_DEPTH, Stack

NAMES = st.sampled_from([f"c{i}" for i in range(20)])


class Sessions(RuleBasedStateMachine):
    """A stack beside a plain list of capabilities."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = Stack()
        self.model: list[str] = []
        self.now = 1_000.0

    @rule(name=NAMES)
    def push(self, name: str) -> None:
        self.stack = self.stack.push(name)
        if name in self.model:
            self.model.remove(name)
        self.model = [*self.model, name][-MAX_DEPTH:]

    @rule()
    def pop(self) -> None:
        self.stack = self.stack.pop()
        self.model = self.model[:-1]

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        self.stack = self.stack.without(name)
        self.model = [one for one in self.model if one != name]

    @rule(seconds=st.floats(0, IDLE_S * 1.2))
    def use(self, seconds: float) -> None:
        self.now += seconds
        idle = self.now - self.stack.used_at >= IDLE_S
        self.stack = self.stack.at(self.now)
        if idle:
            self.model = []
        assert self.stack.used_at == self.now

    @rule(name=NAMES, tool=st.sampled_from(["", "#tool"]))
    def done(self, name: str, tool: str) -> None:
        self.stack = self.stack.after(name + tool, InvokeResult({"done": True}, None, 1))
        if self.model[-1:] == [name]:
            self.model.pop()

    @precondition(lambda self: self.model)
    @rule()
    def top_is_done(self) -> None:
        self.done(self.model[-1], "")

    @invariant()
    def same(self) -> None:
        assert list(self.stack.capabilities) == self.model
        assert self.stack.top == (self.model[-1] if self.model else None)
        assert len(set(self.model)) == len(self.model) <= MAX_DEPTH


TestSessions = Sessions.TestCase


@pytest.mark.parametrize(
    "output",
    [
        {"done": False},
        {"done": 1},
        {"done": "true"},
        {"result": {"done": True}},
        {"text": '{"done":true}'},
        {},
    ],
)
def test_only_true_at_the_top_level_ends_a_session(output: Json) -> None:
    stack = Stack(("a", "b"))
    assert stack.after("b", InvokeResult(output, None, 1)) == stack


def test_an_error_ends_no_session() -> None:
    stack = Stack(("a",))
    failure = ExecutionFailed("no", details={"done": True})
    assert stack.after("a", InvokeResult.of_error(failure, 1)) == stack


def test_a_clock_that_goes_back_keeps_the_session() -> None:
    assert Stack(("a",), 5_000.0).at(10.0) == Stack(("a",), 10.0)
