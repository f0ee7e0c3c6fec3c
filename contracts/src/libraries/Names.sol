// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../interfaces/ICapabilityRegistry.sol";
import {Ascii} from "./Ascii.sol";

/// @notice The grammar of names, `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, and their skeletons.
library Names {
    uint256 internal constant MIN_LENGTH = 2;
    uint256 internal constant MAX_LENGTH = 64;

    /// @notice Returns the skeleton of `name`, or reverts with `InvalidName`.
    function skeletonOf(string calldata name) internal pure returns (string memory) {
        uint256 length = bytes(name).length;
        if (length < MIN_LENGTH || length > MAX_LENGTH) revert ICapabilityRegistry.InvalidName(name);

        bytes memory skeleton = new bytes(length);
        uint256 kept;
        uint256 previous = Ascii.HYPHEN; // so that a hyphen in front is one too many
        for (uint256 i; i < length; ++i) {
            uint256 char = Ascii.at(name, i);
            if (char == Ascii.HYPHEN) {
                if (previous == Ascii.HYPHEN) revert ICapabilityRegistry.InvalidName(name);
            } else {
                bool allowed = Ascii.isLower(char) || (Ascii.isDigit(char) && i > 0);
                if (!allowed) revert ICapabilityRegistry.InvalidName(name);
                skeleton[kept++] = _lookalike(char);
            }
            previous = char;
        }
        if (previous == Ascii.HYPHEN) revert ICapabilityRegistry.InvalidName(name);

        assembly ("memory-safe") {
            mstore(skeleton, kept) // shortens it to what was written
        }
        return string(skeleton);
    }

    /// @dev The character that stands for all that look like `char`.
    function _lookalike(uint256 char) private pure returns (bytes1) {
        if (char == Ascii.ZERO) return "o";
        if (char == uint8(bytes1("1")) || char == uint8(bytes1("i"))) return "l";
        return bytes1(uint8(char));
    }
}
