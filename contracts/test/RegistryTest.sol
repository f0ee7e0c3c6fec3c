// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test} from "./Test.sol";
import {TypedData} from "./TypedData.sol";

/// @notice A registry where names are claimed at once, a few people, and what they do most.
abstract contract RegistryTest is Test {
    address internal constant ALICE = address(0xA11CE);
    address internal constant BOB = address(0xB0B);
    address internal constant CAROL = address(0xCA401);
    address internal constant NOBODY = address(0);

    bytes32 internal constant DIGEST = bytes32(uint256(0xd16e57));
    bytes32 internal constant SECRET = keccak256("a secret");

    // 30 characters are the last that fit into a release word.
    string internal constant SEMVER_30 = "1.0.0-abcdefghijklmnopqrstuvwx";
    string internal constant SEMVER_31 = "1.0.0-abcdefghijklmnopqrstuvwxy";

    ICapabilityRegistry internal registry = newRegistry(0, 0);

    function publish(address by, string memory name, string memory semver) internal {
        publish(by, name, semver, DIGEST);
    }

    function publish(address by, string memory name, string memory semver, bytes32 digest) internal {
        string memory cid = Reference.rawCid(digest);
        vm.prank(by);
        registry.publish(name, semver, cid, digest);
    }

    function claim(address by, string memory name) internal {
        vm.prank(by);
        registry.claim(name, SECRET);
    }

    function addMaintainer(address by, string memory name, address account) internal {
        vm.prank(by);
        registry.addMaintainer(name, account);
    }

    function handOver(address from, address to, string memory name) internal {
        vm.prank(from);
        registry.offerTransfer(name, to);
        vm.prank(to);
        registry.acceptTransfer(name);
    }

    function renounce(address by, string memory name) internal {
        vm.prank(by);
        registry.renounce(name);
    }

    function publication(string memory name, string memory semver)
        internal
        pure
        returns (ICapabilityRegistry.Publication memory)
    {
        return ICapabilityRegistry.Publication(name, semver, Reference.rawCid(DIGEST), DIGEST, SECRET);
    }

    /// @notice Returns what `publisher` signs, on this chain and for this registry.
    function digestOf(
        ICapabilityRegistry.Publication memory one,
        address publisher,
        uint256 nonce,
        uint256 deadline
    ) internal view returns (bytes32) {
        bytes32 domain = TypedData.domain("capdex", "1", vm.getChainId(), address(registry));
        return TypedData.digest(domain, TypedData.hash(one, publisher, nonce, deadline));
    }

    function signDigest(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @notice Expects the next call, made by `by`, to revert with exactly this error.
    function refused(address by, bytes memory why) internal {
        vm.expectRevert(why);
        vm.prank(by);
    }

    /// @notice Expects the next call to emit the event that is emitted next.
    function expectEvent() internal {
        vm.expectEmit(address(registry));
    }

    /// @notice Returns the error that a call by somebody who does not own `name` has.
    function notOwner(string memory name, address caller) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(ICapabilityRegistry.NotOwner.selector, name, caller);
    }

    function notMaintainer(string memory name, address caller) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(ICapabilityRegistry.NotMaintainer.selector, name, caller);
    }
}
