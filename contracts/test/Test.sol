// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5805} from "@openzeppelin/contracts/interfaces/IERC5805.sol";

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {ICapabilityVotes} from "../src/interfaces/ICapabilityVotes.sol";

/// @notice The cheatcodes of forge that the tests use.
interface Vm {
    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    struct Gas {
        uint64 gasLimit;
        uint64 gasTotalUsed;
        uint64 gasMemoryUsed;
        int64 gasRefunded;
        uint64 gasRemaining;
    }

    function assume(bool condition) external pure;
    function prank(address sender) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function chainId(uint256 newChainId) external;
    function getChainId() external view returns (uint256);
    function etch(address account, bytes calldata code) external;
    function store(address account, bytes32 slot, bytes32 value) external;
    function addr(uint256 key) external pure returns (address);
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function expectRevert(bytes calldata data) external;
    function expectRevert() external;
    function expectEmit(address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function deployCode(string calldata artifact, bytes calldata constructorArguments)
        external
        returns (address);
    function load(address account, bytes32 slot) external view returns (bytes32);
    function snapshotGasLastCall(string calldata group, string calldata name) external returns (uint256);
    function lastCallGas() external view returns (Gas memory);
    function snapshotValue(string calldata group, string calldata name, uint256 value) external;
    function warp(uint256 timestamp) external;
    function getBlockTimestamp() external view returns (uint256);
    function roll(uint256 number) external;
    function getBlockNumber() external view returns (uint256);
    function readFile(string calldata path) external view returns (string memory);
    function keyExistsJson(string calldata json, string calldata key) external view returns (bool);
    function parseJsonString(string calldata json, string calldata key) external pure returns (string memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonAddress(string calldata json, string calldata key) external pure returns (address);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function toString(uint256 value) external pure returns (string memory);
}

/// @notice What a test needs: the cheatcodes, assertions that show both values, and the shared vectors.
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    error NotEqual(string what, string left, string right);
    error NotEqualWord(string what, bytes32 left, bytes32 right);
    error NotTrue(string what);

    function assertTrue(bool value, string memory what) internal pure {
        if (!value) revert NotTrue(what);
    }

    function assertEq(string memory left, string memory right, string memory what) internal pure {
        if (keccak256(bytes(left)) != keccak256(bytes(right))) revert NotEqual(what, left, right);
    }

    function assertEq(bytes32 left, bytes32 right, string memory what) internal pure {
        if (left != right) revert NotEqualWord(what, left, right);
    }

    function assertEq(uint256 left, uint256 right, string memory what) internal pure {
        assertEq(bytes32(left), bytes32(right), what);
    }

    function assertEq(address left, address right, string memory what) internal pure {
        assertEq(uint256(uint160(left)), uint256(uint160(right)), what);
    }

    /// @notice Deploys a registry from its artifact, so that no test carries its code inside its own.
    function newRegistry(uint256 minCommitmentAge, uint256 maxCommitmentAge)
        internal
        returns (ICapabilityRegistry)
    {
        bytes memory arguments = abi.encode(minCommitmentAge, maxCommitmentAge);
        return ICapabilityRegistry(vm.deployCode("CapabilityRegistry.sol:CapabilityRegistry", arguments));
    }

    /// @notice Deploys votes on the names of a registry, in the same way.
    function newVotes(ICapabilityRegistry registry, IERC5805 token, uint256 timepoint)
        internal
        returns (ICapabilityVotes)
    {
        bytes memory arguments = abi.encode(registry, token, timepoint);
        return ICapabilityVotes(vm.deployCode("CapabilityVotes.sol:CapabilityVotes", arguments));
    }

    /// @notice Returns a file of vectors that Python reads too.
    function vectors(string memory file) internal view returns (string memory) {
        return vm.readFile(string.concat("../tests/vectors/contract/", file));
    }

    /// @notice Says whether a file of vectors has a case number `i` in `group`.
    function hasCase(string memory json, string memory group, uint256 i) internal view returns (bool) {
        return vm.keyExistsJson(json, _case(group, i));
    }

    /// @notice Returns a field of case number `i` in `group`.
    function field(string memory json, string memory group, uint256 i, string memory key)
        internal
        pure
        returns (string memory)
    {
        return vm.parseJsonString(json, string.concat(_case(group, i), ".", key));
    }

    /// @notice Returns a field of case number `i` in `group` that is a word.
    function wordField(string memory json, string memory group, uint256 i, string memory key)
        internal
        pure
        returns (bytes32)
    {
        return vm.parseJsonBytes32(json, string.concat(_case(group, i), ".", key));
    }

    function addressField(string memory json, string memory group, uint256 i, string memory key)
        internal
        pure
        returns (address)
    {
        return vm.parseJsonAddress(json, string.concat(_case(group, i), ".", key));
    }

    function numberField(string memory json, string memory group, uint256 i, string memory key)
        internal
        pure
        returns (uint256)
    {
        return vm.parseJsonUint(json, string.concat(_case(group, i), ".", key));
    }

    function bytesField(string memory json, string memory group, uint256 i, string memory key)
        internal
        pure
        returns (bytes memory)
    {
        return vm.parseJsonBytes(json, string.concat(_case(group, i), ".", key));
    }

    function _case(string memory group, uint256 i) private pure returns (string memory) {
        return string.concat(".", group, "[", vm.toString(i), "]");
    }
}
