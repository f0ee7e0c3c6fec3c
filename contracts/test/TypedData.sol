// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";

/// @notice EIP-712 of publications, written a second time: what a publisher's wallet computes.
library TypedData {
    function digest(bytes32 domain_, bytes32 structHash) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", domain_, structHash));
    }

    function domain(string memory name, string memory version, uint256 chainId, address place)
        internal
        pure
        returns (bytes32)
    {
        bytes32 kind = keccak256(
            "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
        );
        return keccak256(abi.encode(kind, keccak256(bytes(name)), keccak256(bytes(version)), chainId, place));
    }

    function hash(
        ICapabilityRegistry.Publication memory one,
        address publisher,
        uint256 nonce,
        uint256 deadline
    ) internal pure returns (bytes32) {
        bytes32 kind = keccak256(
            "Publication(string name,string semver,string cid,bytes32 sha256,bytes32 secret,address publisher,uint256 nonce,uint256 deadline)"
        );
        bytes memory strings = abi.encode(
            kind, keccak256(bytes(one.name)), keccak256(bytes(one.semver)), keccak256(bytes(one.cid))
        );
        return
            keccak256(bytes.concat(strings, abi.encode(one.sha256, one.secret, publisher, nonce, deadline)));
    }
}
