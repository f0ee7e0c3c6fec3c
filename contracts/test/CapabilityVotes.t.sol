// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5805} from "@openzeppelin/contracts/interfaces/IERC5805.sol";

import {ICapabilityVotes} from "../src/interfaces/ICapabilityVotes.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";
import {Vm} from "./Test.sol";
import {Token} from "./Token.sol";

contract CapabilityVotesTest is RegistryTest {
    IERC5805 private constant NO_TOKEN = IERC5805(address(0));

    ICapabilityVotes private votes;

    function setUp() public {
        votes = newVotes(registry, NO_TOKEN, 0);
        claim(ALICE, "note");
    }

    // ------------------------------------------------------------------------------------------ without a token

    function test_AVoteWeighsOneAndEmitsVoted() public {
        vm.expectEmit(address(votes));
        emit ICapabilityVotes.Voted(keccak256("note"), BOB, 1, "note", 1, 1);
        _vote(BOB, 1);
        assertTrue(votes.voteOf("note", BOB) == 1, "vote");
        assertTrue(votes.voteOf("note", ALICE) == 0, "nobody else's");
        _tallyIs(1, 0);
    }

    function test_AVoteIsChangedAndTakenBack() public {
        _vote(ALICE, 1);
        _vote(BOB, 1);
        _vote(CAROL, -1);
        _tallyIs(2, 1);
        _vote(BOB, -1);
        _tallyIs(1, 2);
        _vote(CAROL, 0);
        _tallyIs(1, 1);
        _vote(CAROL, 1);
        _vote(BOB, 0);
        _tallyIs(2, 0);
        _vote(BOB, -1);
        _vote(BOB, 1);
        _tallyIs(3, 0);
    }

    function testFuzz_TalliesAreTheSumsOfTheVotes(int8[32] memory values) public {
        uint256 upvotes;
        uint256 downvotes;
        for (uint256 i; i < values.length; ++i) {
            address voter = address(uint160(1 + i % 7));
            int8 value = values[i] % 2;
            if (value == votes.voteOf("note", voter)) continue;
            _vote(voter, value);
        }
        for (uint160 voter = 1; voter <= 7; ++voter) {
            int8 value = votes.voteOf("note", address(voter));
            if (value == 1) ++upvotes;
            if (value == -1) ++downvotes;
        }
        _tallyIs(upvotes, downvotes);
    }

    function test_RevertIf_TheVoteIsWhatItWas() public {
        refused(BOB, abi.encodeWithSelector(ICapabilityVotes.VoteUnchanged.selector, "note", int8(0)));
        votes.vote("note", 0);
        _vote(BOB, -1);
        refused(BOB, abi.encodeWithSelector(ICapabilityVotes.VoteUnchanged.selector, "note", int8(-1)));
        votes.vote("note", -1);
    }

    function testFuzz_RevertIf_TheVoteIsNoVote(int8 value) public {
        vm.assume(value < -1 || value > 1);
        refused(BOB, abi.encodeWithSelector(ICapabilityVotes.InvalidVote.selector, value));
        votes.vote("note", value);
    }

    function test_OnlyClaimedNamesAreVotedOnAndRenouncedOnesToo() public {
        refused(BOB, abi.encodeWithSelector(ICapabilityVotes.NoSuchName.selector, "memo"));
        votes.vote("memo", 1);
        renounce(ALICE, "note");
        _vote(BOB, 1);
        _tallyIs(1, 0);
    }

    function test_RevertIf_ATimepointIsGivenWithoutAToken() public {
        vm.expectRevert(abi.encodeWithSelector(ICapabilityVotes.InvalidTimepoint.selector, 1));
        newVotes(registry, NO_TOKEN, 1);
    }

    // ------------------------------------------------------------------------------------------ with a token

    function test_AVoteWeighsWhatWasHeldAtTheTimepoint() public {
        (Token token, uint256 timepoint) = _token();
        vm.expectEmit(address(votes));
        emit ICapabilityVotes.Voted(keccak256("note"), ALICE, 1, "note", 1, 70);
        _vote(ALICE, 1);
        _vote(BOB, -1);
        _tallyIs(70, 30);
        assertEq(votes.weightOf(ALICE), 70, "weight");
        assertEq(address(votes.TOKEN()), address(token), "token");
        assertEq(votes.TIMEPOINT(), timepoint, "timepoint");
        assertEq(address(votes.REGISTRY()), address(registry), "registry");
    }

    function test_MovingTheTokenGivesNobodyASecondVote() public {
        (Token token,) = _token();
        _vote(ALICE, 1);
        vm.prank(ALICE);
        token.transfer(CAROL, 70);
        vm.prank(CAROL);
        token.delegate(CAROL);
        vm.roll(vm.getBlockNumber() + 10);
        refused(CAROL, abi.encodeWithSelector(ICapabilityVotes.NoVotingPower.selector, CAROL));
        votes.vote("note", 1);
        _vote(ALICE, -1); // hers weighs what it did
        _tallyIs(0, 70);
    }

    function test_RevertIf_TheTimepointIsNotOver() public {
        Token token = new Token();
        uint256 present = vm.getBlockNumber();
        bytes memory why = abi.encodeWithSelector(ICapabilityVotes.InvalidTimepoint.selector, present);
        vm.expectRevert(why);
        newVotes(registry, IERC5805(address(token)), present);
        vm.roll(present + 1);
        newVotes(registry, IERC5805(address(token)), present);
        why = abi.encodeWithSelector(ICapabilityVotes.InvalidTimepoint.selector, type(uint256).max);
        vm.expectRevert(why);
        newVotes(registry, IERC5805(address(token)), type(uint256).max);
    }

    // ------------------------------------------------------------------------------------------ log

    function test_TheVotesHaveALogOfTheirOwn() public {
        vm.recordLogs();
        _vote(ALICE, 1);
        _vote(BOB, -1);
        _vote(ALICE, 0);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        bytes32 word;
        for (uint256 i; i < logs.length; ++i) {
            word = Reference.fold(word, logs[i].topics, logs[i].data);
            assertEq(abi.decode(logs[i].data, (uint64)), i + 1, "sequence");
        }
        (bytes24 head, uint64 count) = votes.log();
        assertEq(count, 3, "one event for each vote");
        assertEq(head | bytes32(uint256(count)), word, "head and count");
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _vote(address by, int8 value) private {
        vm.prank(by);
        votes.vote("note", value);
    }

    function _tallyIs(uint256 upvotes, uint256 downvotes) private view {
        (uint256 up, uint256 down) = votes.tally("note");
        assertEq(up, upvotes, "for");
        assertEq(down, downvotes, "against");
    }

    /// @dev Of which Alice holds 70 and Bob 30 at the timepoint that counts, and Carol nothing.
    function _token() private returns (Token token, uint256 timepoint) {
        token = new Token();
        token.mint(ALICE, 70);
        token.mint(BOB, 30);
        vm.prank(ALICE);
        token.delegate(ALICE);
        vm.prank(BOB);
        token.delegate(BOB);
        timepoint = vm.getBlockNumber();
        vm.roll(timepoint + 1);
        votes = newVotes(registry, IERC5805(address(token)), timepoint);
    }
}
