// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Names} from "../src/libraries/Names.sol";
import {RawCid} from "../src/libraries/RawCid.sol";
import {SemVer} from "../src/libraries/SemVer.sol";
import {Text} from "../src/libraries/Text.sol";

/// @notice The libraries, which take calldata, behind functions that tests can call. Tests reach it by its artifact, so
/// that what they try is compiled as it is in the registry.
contract Grammar {
    function skeletonOf(string calldata name) external pure returns (string memory) {
        return Names.skeletonOf(name);
    }

    function isSemVer(string calldata text) external pure returns (bool) {
        return SemVer.isValid(text);
    }

    function rawCid(bytes32 sha256) external pure returns (string memory) {
        return RawCid.encode(sha256);
    }

    function spells(string calldata cid, bytes32 sha256) external pure returns (bool) {
        return RawCid.spells(cid, sha256);
    }

    function hash(string calldata text) external pure returns (bytes32) {
        return Text.hash(text);
    }
}
