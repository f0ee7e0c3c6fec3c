// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5805} from "@openzeppelin/contracts/interfaces/IERC5805.sol";

import {ICapabilityRegistry} from "./ICapabilityRegistry.sol";

/// @title Votes on capabilities
/// @notice Every account may hold one vote, for or against, on each name of one registry, and change it at any time.
/// Votes are shown to people; nothing in the protocol depends on them.
///
/// A vote weighs one where no token is given. Else it weighs what the account held of an ERC-5805 token at one
/// timepoint in the past, token and timepoint being fixed for good: moving the token afterwards gives nobody a second
/// vote. The token is trusted to answer alike for ever, as ERC-5805 has it.
///
/// Every change of state emits one event, and the events are folded into a head as those of `ICapabilityRegistry` are.
interface ICapabilityVotes {
    /// @notice Thrown when votes are to be weighed at a timepoint that is not over in the token's clock, or at any
    /// without a token.
    error InvalidTimepoint(uint256 timepoint);

    /// @notice Thrown when a vote is on a name that nobody has claimed.
    error NoSuchName(string name);

    /// @notice Thrown when a vote is neither 1, nor -1, nor 0.
    error InvalidVote(int8 vote);

    /// @notice Thrown when a vote is what it was.
    error VoteUnchanged(string name, int8 vote);

    /// @notice Thrown when `voter` held nothing of the token at the timepoint.
    error NoVotingPower(address voter);

    /// @notice Emitted when an account votes, changes its vote or takes it back.
    /// @param nameId The hash of the name.
    /// @param voter The account.
    /// @param sequence The position of this event among all events of this contract, from 1.
    /// @param name The name.
    /// @param vote 1 for, -1 against, 0 neither.
    /// @param weight What the vote weighs.
    event Voted(
        bytes32 indexed nameId, address indexed voter, uint64 sequence, string name, int8 vote, uint256 weight
    );

    /// @notice Votes on `name`, in place of the caller's earlier vote on it.
    /// @dev Reverts with `InvalidVote`, `NoSuchName`, `VoteUnchanged` or `NoVotingPower`, looked for in this order.
    /// Emits `Voted`.
    /// @param name The name of a capability; a renounced one is fine.
    /// @param value 1 for, -1 against, 0 to take the vote back.
    function vote(string calldata name, int8 value) external;

    /// @notice Returns the vote of `voter` on `name`: 1, -1, or 0 for none.
    /// @param name The name of the capability.
    /// @param voter The account.
    function voteOf(string calldata name, address voter) external view returns (int8);

    /// @notice Returns the sums of the weights of all votes on `name`.
    /// @param name The name of the capability.
    function tally(string calldata name) external view returns (uint256 upvotes, uint256 downvotes);

    /// @notice Returns what a vote of `voter` weighs.
    /// @param voter The account.
    function weightOf(address voter) external view returns (uint256);

    /// @notice Returns the registry whose names are voted on.
    function REGISTRY() external view returns (ICapabilityRegistry);

    /// @notice Returns the token that votes are weighed by; zero when every vote weighs one.
    function TOKEN() external view returns (IERC5805);

    /// @notice Returns the timepoint, in the token's clock, at which holdings count; zero without a token.
    function TIMEPOINT() external view returns (uint256);

    /// @notice Returns the head of the log, into which all events are folded, and the number of events.
    function log() external view returns (bytes24 head, uint64 count);
}
