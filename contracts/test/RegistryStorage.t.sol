// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test} from "./Test.sol";

/// @notice Reads the raw slots at the addresses that `RegistryStorage` documents, as a verifier of proofs does.
contract RegistryStorageTest is Test {
    bytes32 private constant DIGEST = bytes32(uint256(0xd16e57));
    string private constant SEMVER_30 = "1.0.0-abcdefghijklmnopqrstuvwx";
    string private constant SEMVER_31 = "1.0.0-abcdefghijklmnopqrstuvwxy";

    ICapabilityRegistry private registry = newRegistry(0, 0);

    function test_Slot0HoldsHeadAndCountOfTheLog() public {
        assertEq(_load(0), 0, "before");
        _publish("note", "1.0.0");
        (bytes24 head, uint64 count) = registry.log();
        assertEq(_load(0), head | bytes32(uint256(count)), "after");
    }

    function test_Slot1HoldsTheRecordOfAName() public {
        bytes32 slot = _k(keccak256("note"), bytes32(uint256(1)));
        assertEq(_load(slot), 0, "absent");
        _publish("note", "1.0.0");
        _publish("note", "1.0.1");
        bytes4 flags = 0;
        bytes4 epoch = 0;
        bytes4 releaseCount = bytes4(uint32(2));
        assertEq(
            _load(slot), bytes32(bytes.concat(flags, epoch, releaseCount, bytes20(address(this)))), "record"
        );
    }

    function test_Slot2HoldsTheNameOfASkeleton() public {
        bytes32 slot = _k(keccak256("noteslsts"), bytes32(uint256(2)));
        assertEq(_load(slot), 0, "absent");
        _publish("notes-1sts", "1.0.0");
        assertEq(
            _load(slot),
            bytes32("notes-1sts") | bytes32(uint256(2 * 10)),
            "a short string, its length doubled"
        );
    }

    function test_Slot3HoldsTheDigestOfARelease() public {
        bytes32 slot = _k(keccak256("1.0.0"), _k(keccak256("note"), bytes32(uint256(3))));
        assertEq(_load(slot), 0, "absent");
        _publish("note", "1.0.0");
        assertEq(_load(slot), DIGEST, "digest");
    }

    function test_Slot4HoldsFlagsAndVersionAtAnIndex() public {
        _publish("note", "1.0.0");
        _publish("note", SEMVER_30);
        _publish("note", SEMVER_31);
        assertEq(_load(_releaseSlot(0)), bytes32(bytes.concat(hex"00", bytes1(uint8(5)), "1.0.0")), "short");
        assertEq(
            _load(_releaseSlot(1)), bytes32(bytes.concat(hex"00", bytes1(uint8(30)), bytes(SEMVER_30))), "30"
        );
        assertEq(_load(_releaseSlot(2)), bytes32(bytes.concat(hex"00", bytes1(uint8(31)))), "31");
        assertEq(_load(_releaseSlot(3)), 0, "beyond the list");

        registry.yank("note", "1.0.0", 0, "");
        registry.yank("note", SEMVER_31, 2, "");
        assertEq(_load(_releaseSlot(0)), bytes32(bytes.concat(hex"01", bytes1(uint8(5)), "1.0.0")), "yanked");
        assertEq(_load(_releaseSlot(2)), bytes32(bytes.concat(hex"01", bytes1(uint8(31)))), "long and yanked");

        registry.unyank("note", "1.0.0", 0);
        assertEq(
            _load(_releaseSlot(0)), bytes32(bytes.concat(hex"00", bytes1(uint8(5)), "1.0.0")), "unyanked"
        );
    }

    function test_Slot5HoldsTheTextOfALongVersion() public {
        _publish("note", SEMVER_31);
        _publish("note", SEMVER_30);
        bytes32 byName = _k(keccak256("note"), bytes32(uint256(5)));
        bytes32 long = bytes32(bytes(SEMVER_31)) | bytes32(uint256(2 * 31));
        assertEq(_load(_k(bytes32(uint256(0)), byName)), long, "31 characters");
        assertEq(_load(_k(bytes32(uint256(1)), byName)), 0, "30 characters");
    }

    function testFuzz_TheOwnerIsTheLowestTwentyBytes(address owner) public {
        vm.assume(owner != address(0));
        vm.prank(owner);
        registry.publish("note", "1.0.0", Reference.rawCid(DIGEST), DIGEST);
        bytes32 word = _load(_k(keccak256("note"), bytes32(uint256(1))));
        assertEq(address(uint160(uint256(word))), owner, "owner");
        assertEq(uint256(word) >> 160, 1, "count of releases, and nothing above");
    }

    /// @dev Solidity's rule for the slot of a mapping's value.
    function _k(bytes32 key, bytes32 slot) private pure returns (bytes32) {
        return keccak256(bytes.concat(key, slot));
    }

    function _releaseSlot(uint256 index) private pure returns (bytes32) {
        return _k(bytes32(index), _k(keccak256("note"), bytes32(uint256(4))));
    }

    function _load(bytes32 slot) private view returns (bytes32) {
        return vm.load(address(registry), slot);
    }

    function _publish(string memory name, string memory semver) private {
        registry.publish(name, semver, Reference.rawCid(DIGEST), DIGEST);
    }
}
