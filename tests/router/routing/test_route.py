"""Routing of a message over the stack and the triggers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.manifest.triggers import Trigger
from capdex_router.routing.index import TriggerIndex
from capdex_router.routing.route import MAX_CANDIDATES, Ambiguous, Fallback, RoutedCapability, route
from capdex_router.routing.stack import IDLE_S, Stack

NOTE, NOTEBOOK = "did:nuwa:cap:note", "did:nuwa:cap:notebook"
WEATHER, NEWS = "did:nuwa:cap:weatherreporter", "did:nuwa:cap:news"
EVIL = "did:nuwa:cap:evil"
EMPTY = Stack()


def index_of(installed: dict[str, list[Trigger]]) -> TriggerIndex:
    index = TriggerIndex()
    for capability, own in installed.items():
        index.add(capability, own)
    index.compile()
    return index


INSTALLED = {
    NOTE: [Trigger("regex", "记(.*)笔记|note|add note about")],
    NOTEBOOK: [Trigger("keyword", "jupyter")],
    WEATHER: [Trigger("regex", "weather|forecast")],
    NEWS: [Trigger("keyword", "headlines"), Trigger("regex", "morning report")],
}


@pytest.fixture(scope="module")
def index() -> TriggerIndex:
    return index_of(INSTALLED)


@pytest.mark.parametrize(
    ("message", "capability", "why"),
    [
        ("What will the weather be in Oslo?", WEATHER, 'regex "weather|forecast"'),
        ("帮我记一条笔记", NOTE, 'regex "记(.*)笔记|note|add note about"'),
        ("the headlines in the weather section", NEWS, 'keyword "headlines"'),
        ("weather in the morning report", NEWS, 'regex "morning report"'),
        ("WeatherReporter", WEATHER, 'regex "weather|forecast"'),
        ("did:nuwa:cap:notebook", NOTE, 'regex "记(.*)笔记|note|add note about"'),
        ("News", NEWS, "its name"),
    ],
)
def test_a_message_goes_to_the_capability_that_it_names_best(
    index: TriggerIndex, message: str, capability: str, why: str
) -> None:
    assert route(message, EMPTY, index, 5.0) == (
        RoutedCapability(capability, why),
        Stack((capability,), 5.0),
    )


def test_without_a_match_the_agent_answers_by_itself(index: TriggerIndex) -> None:
    assert route("hello there", EMPTY, index, 0) == (Fallback("no trigger matches"), EMPTY)
    assert route("", EMPTY, TriggerIndex(), 0) == (Fallback("no trigger matches"), EMPTY)


def test_while_triggers_are_compiled_names_are_found_and_the_rest_falls_back() -> None:
    index = TriggerIndex()
    index.add(NOTE, INSTALLED[NOTE])
    answer, _ = route("add note about milk", EMPTY, index, 0)
    assert answer == Fallback("no name matches, and triggers are still being compiled")
    assert route("/switch note", EMPTY, index, 0)[1].top == NOTE
    assert route("note", EMPTY, index, 0)[0] == RoutedCapability(NOTE, "its name")


def test_the_active_capability_keeps_what_it_matches_and_what_nothing_matches(
    index: TriggerIndex,
) -> None:
    stack = Stack((NOTE,))
    answer, after = route("headlines: note them", stack, index, 0)
    assert answer == RoutedCapability(NOTE, 'active, and regex "记(.*)笔记|note|add note about"')
    assert after == stack
    answer, after = route("and in the evening?", stack, index, 0)
    assert answer == RoutedCapability(NOTE, "active, and nothing precise matches")
    assert after == stack


def test_another_topic_replaces_the_top_and_a_switch_keeps_it(index: TriggerIndex) -> None:
    stack = Stack((NOTE, NEWS))
    assert route("the weather", stack, index, 0)[1].capabilities == (NOTE, WEATHER)
    assert route("/switch weatherreporter", stack, index, 0)[1].capabilities == (
        NOTE,
        NEWS,
        WEATHER,
    )


def test_back_returns_to_the_capability_before(index: TriggerIndex) -> None:
    stack = Stack((NOTE, WEATHER))
    assert route("/back", stack, index, 0) == (RoutedCapability(NOTE, "/back"), Stack((NOTE,)))
    nothing = Fallback("/back, and no capability is active now")
    assert route(" ／ＢＡＣＫ ", Stack((NOTE,)), index, 0) == (nothing, EMPTY)
    assert route("/back", EMPTY, index, 0) == (nothing, EMPTY)


@pytest.mark.parametrize(
    "message", ["/backup my files", "/back to the future", "please /back", "/ back"]
)
def test_only_the_whole_command_is_a_command(index: TriggerIndex, message: str) -> None:
    stack = Stack((NOTE,))
    assert route(message, stack, index, 0)[1] == stack


@pytest.mark.parametrize(
    "name", ["note", "NOTE", NOTE, f"{NOTE}@1.0.0", "note@^1", "noteb", "w", "ｗｅａｔｈｅｒ"]
)
def test_a_switch_takes_an_exact_name_or_a_prefix_of_one(index: TriggerIndex, name: str) -> None:
    answer, stack = route(f"/switch {name}", EMPTY, index, 0)
    expected = {"noteb": NOTEBOOK, "w": WEATHER, "ｗｅａｔｈｅｒ": WEATHER}.get(name, NOTE)
    assert isinstance(answer, RoutedCapability)
    assert answer.capability == stack.top == expected


@pytest.mark.parametrize(
    ("name", "candidates", "total"),
    [
        ("not", (NOTE, NOTEBOOK), 2),
        ("", (NEWS, NOTE, NOTEBOOK, WEATHER), 4),
        ("nоte", (NEWS, NOTE, NOTEBOOK, WEATHER), 4),  # the o is Cyrillic
        ("x" * 9_000, (NEWS, NOTE, NOTEBOOK, WEATHER), 4),
    ],
)
def test_a_switch_that_is_not_clear_lists_names(
    index: TriggerIndex, name: str, candidates: tuple[str, ...], total: int
) -> None:
    answer, stack = route(f"/switch {name}", EMPTY, index, 0)
    assert isinstance(answer, Ambiguous)
    assert (answer.candidates, answer.total) == (candidates, total)
    assert len(answer.why) < 200
    assert ("names no capability" in answer.why) == (not name)
    assert stack == EMPTY


def test_a_switch_without_anything_installed_falls_back() -> None:
    answer, _ = route("/switch x", EMPTY, TriggerIndex(), 0)
    assert answer == Fallback("/switch, and no capability is installed")


def test_two_capabilities_that_match_equally_are_asked_about(index: TriggerIndex) -> None:
    both = index_of({**INSTALLED, EVIL: [Trigger("regex", "forecasts?|weathers?")]})
    answer, stack = route("the weather", EMPTY, both, 0)
    assert isinstance(answer, Ambiguous)
    assert answer.candidates == (EVIL, WEATHER)
    assert stack == EMPTY


def test_very_many_equal_candidates_are_counted_and_some_shown() -> None:
    many = {f"did:nuwa:cap:c{i:02}": [Trigger("keyword", "milk")] for i in range(40)}
    answer, _ = route("milk", EMPTY, index_of(many), 0)
    assert isinstance(answer, Ambiguous)
    assert (len(answer.candidates), answer.total) == (MAX_CANDIDATES, 40)


@pytest.mark.parametrize(
    "message", ["don't show me the weather", "never add note about this", "不要记这个笔记"]
)
def test_a_negated_sentence_is_asked_about(index: TriggerIndex, message: str) -> None:
    answer, stack = route(message, EMPTY, index, 0)
    assert isinstance(answer, Ambiguous)
    assert len(answer.candidates) == 1
    assert answer.why.endswith("the sentence has a negation")
    assert stack == EMPTY


def test_half_an_hour_without_a_message_ends_a_session(index: TriggerIndex) -> None:
    stack = Stack((NOTE, NEWS), 100.0)
    assert route("go on", stack, index, 100.0 + IDLE_S - 1)[1].top == NEWS
    assert route("go on", stack, index, 100.0 + IDLE_S) == (
        Fallback("no trigger matches"),
        Stack((), 100.0 + IDLE_S),
    )


def test_a_capability_that_was_removed_leaves_the_stack(index: TriggerIndex) -> None:
    assert route("go on", Stack((NOTE, "did:nuwa:cap:gone")), index, 0) == (
        RoutedCapability(NOTE, "active, and nothing precise matches"),
        Stack((NOTE,)),
    )


@pytest.fixture(scope="module")
def captured() -> TriggerIndex:
    """Return an index with a package that wants every message, and the commands."""
    broad = [Trigger("regex", f".*{'x?' * n}") for n in range(60)]
    commands = [
        Trigger("regex", "/back"),
        Trigger("keyword", "/back"),
        Trigger("keyword", "/switch"),
        Trigger("keyword", "the"),
    ]
    return index_of({**INSTALLED, EVIL: [*broad, *commands]})


def test_broad_triggers_take_no_message_from_a_capability_that_names_it(
    captured: TriggerIndex,
) -> None:
    assert route("the weather", EMPTY, captured, 0)[1].top == WEATHER
    assert route("the weather", Stack((EVIL,)), captured, 0)[1].top == WEATHER
    assert route("and the evening?", Stack((WEATHER,)), captured, 0)[1].top == WEATHER


def test_a_broad_trigger_gets_the_rest_and_is_called_broad(captured: TriggerIndex) -> None:
    answer, _ = route("hello", EMPTY, captured, 0)
    assert isinstance(answer, RoutedCapability)
    assert answer.capability == EVIL
    assert answer.why.startswith("broad regex")


def test_triggers_equal_to_commands_get_no_command(captured: TriggerIndex) -> None:
    assert route("/back", Stack((NOTE, WEATHER)), captured, 0)[1].top == NOTE
    assert route("/switch news", EMPTY, captured, 0)[1].top == NEWS


def test_the_text_of_a_trigger_is_shown_on_one_line_and_cut() -> None:
    shouting = index_of({EVIL: [Trigger("regex", "say\n\u202ehello|" + "x" * 400)]})
    answer, _ = route("say\n\u202ehello", EMPTY, shouting, 0)
    assert isinstance(answer, RoutedCapability)
    assert "\n" not in answer.why
    assert "\u202e" not in answer.why
    assert len(answer.why) < 120


def test_the_text_of_a_trigger_does_not_end_its_quotation() -> None:
    imitating = index_of({EVIL: [Trigger("keyword", 'rain", its name, "sun')]})
    answer, _ = route('rain", its name, "sun', EMPTY, imitating, 0)
    assert isinstance(answer, RoutedCapability)
    assert answer.why == r'keyword "rain\", its name, \"sun"'


@given(st.text(max_size=100), st.lists(st.sampled_from([NOTE, NEWS, EVIL]), max_size=4))
def test_any_message_has_an_answer_within_what_is_installed(
    message: str, stacked: list[str]
) -> None:
    index = _SHARED
    answer, after = route(message, Stack(tuple(dict.fromkeys(stacked))), index, 1.0)
    assert set(after.capabilities) <= set(INSTALLED)
    if isinstance(answer, RoutedCapability):
        assert answer.capability == after.top
    if isinstance(answer, Ambiguous):
        assert set(answer.candidates) <= set(INSTALLED)


_SHARED = index_of(INSTALLED)
