// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";

/// @notice A wallet that signs (ERC-1271) by approving a digest, whatever the signature is.
contract Wallet {
    mapping(bytes32 digest => bool) private _approved;

    function approve(bytes32 digest) external {
        _approved[digest] = true;
    }

    function isValidSignature(bytes32 digest, bytes calldata) external view virtual returns (bytes4) {
        return _approved[digest] ? this.isValidSignature.selector : bytes4(0xffffffff);
    }
}

/// @notice A wallet that answers what it was given as the signature: of any length, right or wrong, or reverts with it.
contract ParrotWallet {
    function isValidSignature(bytes32, bytes calldata answer) external pure {
        bytes memory said = answer[1:];
        bool good = answer[0] != 0;
        assembly {
            if good { return(add(said, 32), mload(said)) }
            revert(add(said, 32), mload(said))
        }
    }
}

/// @notice A wallet that never answers.
contract EndlessWallet {
    function isValidSignature(bytes32, bytes calldata) external pure returns (bytes4) {
        while (true) {}
        return this.isValidSignature.selector;
    }
}

/// @notice A wallet that, while it is asked for one signature, tries to use it a second time, and to change the registry
/// in every other way; and then says yes.
contract HostileWallet {
    ICapabilityRegistry private immutable _registry;
    bytes[] private _calls;

    constructor(ICapabilityRegistry registry) {
        _registry = registry;
    }

    function plan(bytes calldata call) external {
        _calls.push(call);
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        for (uint256 i; i < _calls.length; ++i) {
            // What calls this one is a staticcall, so these could be nothing else. A refusal eats all gas it is given.
            (bool done,) = address(_registry).staticcall{gas: 1_000_000}(_calls[i]);
            require(!done, "the registry could be changed from within a signature's check");
        }
        return this.isValidSignature.selector;
    }
}
