"""What vendors say when a range is too wide: understood as such, and the range they name."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.net.rpc.errors import (
    MAX_HINT,
    RpcFault,
    of_error,
    refusal,
    rpc_error,
    suggested_blocks,
)

ALCHEMY = (
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and "
    "no limit on the response size, or you can request any block range with a cap of 10K logs in "
    "the response. Based on your parameters and the response size limit, this block range should "
    "work: [0x0, 0x3e7]"
)
ALCHEMY_FREE = (
    "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range. Based"
    " on your parameters, this block range should work: [0x1180fca, 0x1180fd3]. Upgrade to PAYG for"
    " expanded block range."
)
BESU_KIN = "block range is larger than max block range, block range = 5120, max block range = 5000"
MORE = "query returned more than 10000 results"
WORDS = [
    (ALCHEMY, 1000),
    (ALCHEMY_FREE, 10),
    ("You can make eth_getLogs requests with up to a 2K block range and no limit", 2000),
    ("You can make eth_getLogs requests with up to a 500 block range.", 500),
    (f"{MORE}. Try with this block range [0xBDE5F8, 0xBDE667].", 0x70),
    (f"Q{MORE[1:]}. Try with this block range [0x118dc91, 0x118dc91].", 1),
    ("query exceeds max results 20000, retry with the range 3600741-3600840", 100),
    ("query exceeds max block range 100000", 100_000),
    ("block range is too wide (maximum 1024)", 1024),
    ("eth_getLogs is limited to a 10,000 range", 10_000),
    ("eth_getLogs and eth_newFilter are limited to a 10,000 blocks range", 10_000),
    ("logs are limited to a 10000 block range", 10_000),
    ("eth_getLogs is limited to 1024 blocks range", 1024),
    ("eth_getLogs is limited to 0 - 1000 blocks range", 1000),
    ("eth_getLogs is limited to 2,000 blocks", 2000),
    ("range limit exceeded: max 800", 800),
    ("Max range: 800", 800),
    ("exceed maximum block range: 5000", 5000),
    ("maximum block range: 50000", 50_000),
    (BESU_KIN, 5000),
    ("range 1000000 exceeds limit of 10000", 10_000),
    ("requested too many blocks from 0 to 4096, maximum is set to 2048", 2048),
    ("Maximum allowed number of requested blocks is 3500", 3500),
    ("block range exceeds the range allowed for your plan (10001 > 10000)", 10_000),
    ("please limit the query to at most 1,000 blocks", 1000),
    ("block range greater than 10000 max", 10_000),
    ("block range exceeds 1000", 1000),
    ("eth_getLogs range is too large, max is 10k blocks", 10_000),
    ("query must be smaller than size 1024", 1024),
    ("invalid block range, maximum [from, to] blocks distance: 10000", 10_000),
    ("ranges over 10000 blocks are not supported on freetier", 10_000),
]
SILENT = [
    MORE,
    "block range is too wide",
    "block range too high",
    "backend response too large",
    "Response is too big",
    "response size should not greater than 10000000 bytes",
    "logs matched by query exceeds limit of 10000",
    "Block range limit exceeded. See more details at https://docs.example/limits#evm-range-limits",
    "Query timeout exceeded. Consider reducing your block range.",
    "block range is too wide: it exceeds the max batch size",
    f"{MORE}, use a smaller batch size",
]


@pytest.mark.parametrize(("words", "blocks"), WORDS)
def test_a_range_that_a_vendor_names_is_read_out_of_its_words(words, blocks):
    assert suggested_blocks(words) == blocks


@pytest.mark.parametrize("words", [words for words, _ in WORDS] + SILENT)
@pytest.mark.parametrize("code", [-32000, -32005, -32600, -32602])
def test_every_way_to_say_too_wide_is_understood(words, code):
    assert of_error({"code": code, "message": words}) is RpcFault.TOO_LARGE_RANGE


@pytest.mark.parametrize("words", SILENT)
def test_a_number_that_counts_no_blocks_is_no_hint(words):
    assert suggested_blocks(words) is None


@pytest.mark.parametrize(
    "words",
    [
        "daily request count exceeded, request rate limited",
        "credits limited to 6000/sec",
        "header not found",
        "missing trie node",
        "execution reverted: up to you",
    ],
)
def test_other_complaints_are_not_taken_for_wide_ranges(words):
    assert of_error({"code": -32000, "message": words}) is not RpcFault.TOO_LARGE_RANGE


@pytest.mark.parametrize(
    "words",
    [
        "daily request count exceeded, request rate limited",
        "credits limited to 6000/sec",
        "50/second request limit reached - reduce calls per second or upgrade your account",
        "Your app has exceeded its compute units per second capacity",
        "rate limit exceeded",
        "Too Many Requests",
        "Monthly capacity limit exceeded",
        "project ID request rate exceeded",
    ],
)
def test_every_way_to_ask_for_patience_is_understood(words):
    assert of_error({"code": -32000, "message": words}) is RpcFault.RATE


def test_a_range_in_the_errors_data_is_read_too():
    error = {"code": -32005, "message": MORE, "data": {"from": "0x10", "to": "0x1f", "limit": 1}}
    assert refusal("a", error).blocks == 16


def test_a_long_message_is_read_to_its_hint_and_shown_short():
    error = refusal("a", {"code": -32602, "message": ALCHEMY})
    assert (error.fault, error.blocks) == (RpcFault.TOO_LARGE_RANGE, 1000)
    assert len(error.why) <= 300


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ('{"code": 429, "message": DEEP, "data": DEEP}', RpcFault.RATE),
        (f'{{"message": "{MORE}", "data": {{"from": DEEP}}}}', RpcFault.TOO_LARGE_RANGE),
        ("DEEP", RpcFault.TRANSIENT),
    ],
)
def test_an_error_as_deep_as_json_may_be_is_a_fault_as_others_are(error, fault):
    found = refusal("here", orjson.loads(error.replace("DEEP", "[" * 1000 + "]" * 1000)))
    assert (found.fault, bool(found.why)) == (fault, True)


FRAGMENTS = st.sampled_from(
    ["block range", "[0x", "0x1, 0x", "]", "limited to a ", "max ", "range ", "1-", ":", "10,000"]
)


@given(st.lists(FRAGMENTS | st.text(max_size=5) | st.integers().map(str)).map("".join), st.none())
def test_any_words_give_a_bounded_hint_or_none(words, data):
    blocks = suggested_blocks(words, data)
    assert blocks is None or 1 <= blocks <= MAX_HINT


@given(
    st.dictionaries(st.sampled_from(["from", "to"]), st.none() | st.text() | st.integers().map(hex))
)
def test_any_data_gives_a_bounded_hint_or_none(data):
    blocks = suggested_blocks("", data)
    assert blocks is None or 1 <= blocks <= MAX_HINT


@given(st.integers(0, 2**40), st.integers(0, MAX_HINT - 1))
def test_a_range_in_brackets_is_counted_with_both_ends(first, more):
    span = f"this block range should work: [{hex(first)}, {hex(first + more)}]"
    assert suggested_blocks(span) == more + 1


def test_an_endpoint_that_limits_its_requests_is_not_said_to_be_down() -> None:
    assert refusal("a", {"code": 429, "message": "Too Many Requests"}).fix.startswith("try again")


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        ({"code": -32601, "message": "the method eth_feeHistory does not exist"}, "name another"),
        ({"code": -32602, "message": "too many arguments, want at most 1"}, "name another"),
        ({"code": -32603, "message": "Internal error"}, "try again later, or name another"),
    ],
)
def test_an_endpoint_that_refuses_a_call_is_not_said_to_be_out_of_reach(
    said: Any, fix: str
) -> None:
    assert refusal("a", said).fix == f"{fix} endpoint with --rpc-url"
    silent = rpc_error("a", RpcFault.FATAL, "HTTP status 401")
    assert silent.fix.startswith("see that it runs and has this address")
