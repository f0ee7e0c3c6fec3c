// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../interfaces/ICapabilityRegistry.sol";
import {Text} from "./Text.sol";

/// @notice The grammar of names, `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, and their skeletons.
library Names {
    uint256 internal constant MIN_LENGTH = 2;
    uint256 internal constant MAX_LENGTH = 64;

    // What a letter and a digit look like, from `a` and from `0` on.
    bytes32 private constant LETTERS = "abcdefghljklmnopqrstuvwxyz";
    bytes32 private constant DIGITS = "ol23456789";

    /// @notice Returns the skeleton of `name`, or reverts with `InvalidName`.
    function skeletonOf(string calldata name) internal pure returns (string memory skeleton) {
        uint256 length = bytes(name).length;
        if (length < MIN_LENGTH || length > MAX_LENGTH) revert ICapabilityRegistry.InvalidName(name);
        if (!Text.isLower(Text.at(name, 0))) revert ICapabilityRegistry.InvalidName(name);

        skeleton = new string(length);
        uint256 kept;
        uint256 last;
        unchecked {
            for (uint256 i; i < length; ++i) {
                uint256 char = Text.at(name, i);
                uint256 seen = _lookalike(char);
                if (seen != 0) {
                    assembly ("memory-safe") {
                        mstore8(add(add(skeleton, 32), kept), seen)
                    }
                    ++kept;
                } else if (char != Text.HYPHEN || last == 0) {
                    revert ICapabilityRegistry.InvalidName(name);
                }
                last = seen;
            }
        }
        if (last == 0) revert ICapabilityRegistry.InvalidName(name);

        assembly ("memory-safe") {
            mstore(skeleton, kept) // shortens it to what was written
        }
    }

    /// @dev What `char` looks like, and zero when it is neither a letter nor a digit: a byte beyond a word is zero.
    function _lookalike(uint256 char) private pure returns (uint256 seen) {
        assembly ("memory-safe") {
            seen := or(byte(sub(char, 0x61), LETTERS), byte(sub(char, 0x30), DIGITS))
        }
    }
}
