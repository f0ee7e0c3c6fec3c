// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5805} from "@openzeppelin/contracts/interfaces/IERC5805.sol";

import {ICapabilityRegistry} from "./interfaces/ICapabilityRegistry.sol";
import {ICapabilityVotes} from "./interfaces/ICapabilityVotes.sol";
import {EventLog} from "./libraries/EventLog.sol";
import {Text} from "./libraries/Text.sol";

/// @title CapabilityVotes
/// @notice See `ICapabilityVotes`.
contract CapabilityVotes is ICapabilityVotes {
    using EventLog for EventLog.Log;

    struct Tally {
        uint256 upvotes;
        uint256 downvotes;
    }

    /// @inheritdoc ICapabilityVotes
    ICapabilityRegistry public immutable REGISTRY;

    /// @inheritdoc ICapabilityVotes
    IERC5805 public immutable TOKEN;

    /// @inheritdoc ICapabilityVotes
    uint256 public immutable TIMEPOINT;

    EventLog.Log private _log;
    mapping(bytes32 nameId => Tally) private _tallies;
    mapping(bytes32 nameId => mapping(address voter => int8)) private _votes;

    /// @param registry The registry whose names are voted on.
    /// @param token An ERC-5805 token, or zero.
    /// @param timepoint The time or block, in the token's clock, at which holdings count; zero without a token.
    constructor(ICapabilityRegistry registry, IERC5805 token, uint256 timepoint) {
        bool isOver = address(token) == address(0) ? timepoint == 0 : timepoint < token.clock();
        if (!isOver) revert InvalidTimepoint(timepoint);
        REGISTRY = registry;
        TOKEN = token;
        TIMEPOINT = timepoint;
    }

    /// @inheritdoc ICapabilityVotes
    function vote(string calldata name, int8 value) external {
        if (value < -1 || value > 1) revert InvalidVote(value);
        // slither-disable-next-line unused-return - the other three say nothing of whether it was ever claimed
        (address owner,,, uint32 epoch,) = REGISTRY.nameRecord(name);
        if (owner == address(0) && epoch == 0) revert NoSuchName(name);
        bytes32 nameId = Text.hash(name);
        int8 former = _votes[nameId][msg.sender];
        if (value == former) revert VoteUnchanged(name, value);
        uint256 weight = weightOf(msg.sender);
        if (weight == 0) revert NoVotingPower(msg.sender);

        Tally storage sums = _tallies[nameId];
        if (former == 1) sums.upvotes -= weight;
        if (former == -1) sums.downvotes -= weight;
        if (value == 1) sums.upvotes += weight;
        if (value == -1) sums.downvotes += weight;
        _votes[nameId][msg.sender] = value;
        bytes memory data = abi.encode(EventLog.SEQUENCE, name, value, weight);
        _log.append(Voted.selector, nameId, msg.sender, data);
    }

    /// @inheritdoc ICapabilityVotes
    function voteOf(string calldata name, address voter) external view returns (int8) {
        return _votes[Text.hash(name)][voter];
    }

    /// @inheritdoc ICapabilityVotes
    function tally(string calldata name) external view returns (uint256 upvotes, uint256 downvotes) {
        Tally storage sums = _tallies[Text.hash(name)];
        return (sums.upvotes, sums.downvotes);
    }

    /// @inheritdoc ICapabilityVotes
    function weightOf(address voter) public view returns (uint256) {
        return address(TOKEN) == address(0) ? 1 : TOKEN.getPastVotes(voter, TIMEPOINT);
    }

    /// @inheritdoc ICapabilityVotes
    function log() external view returns (bytes24 head, uint64 count) {
        return (_log.head(), _log.count());
    }
}
