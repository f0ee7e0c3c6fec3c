// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";

/// @notice Reads the raw slots at the addresses that `RegistryStorage` documents, as a verifier of proofs does.
contract RegistryStorageTest is RegistryTest {
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

    function test_Slot1HoldsEpochAndFlagsToo() public {
        bytes32 slot = _k(keccak256("note"), bytes32(uint256(1)));
        _publish("note", "1.0.0");
        registry.deprecateName("note", "", "");
        assertEq(_load(slot), _record(1, 0, 1, address(this)), "deprecated");
        handOver(address(this), ALICE, "note");
        assertEq(_load(slot), _record(1, 1, 1, ALICE), "handed over");
        vm.prank(ALICE);
        registry.undeprecateName("note");
        assertEq(_load(slot), _record(0, 1, 1, ALICE), "undeprecated");
        renounce(ALICE, "note");
        assertEq(_load(slot), _record(0, 2, 1, NOBODY), "renounced");
    }

    function test_CountersOfSlot1GoOnBeyondOneByte() public {
        bytes32 slot = _k(keccak256("note"), bytes32(uint256(1)));
        vm.store(address(registry), slot, _record(1, 511, 511, address(this)));
        _publish("note", "1.0.0");
        assertEq(_load(slot), _record(1, 511, 512, address(this)), "published");
        registry.renounce("note");
        assertEq(_load(slot), _record(1, 512, 512, address(0)), "renounced");
    }

    function test_RevertIf_ACounterWouldRunOverIntoItsNeighbour() public {
        bytes32 slot = _k(keccak256("note"), bytes32(uint256(1)));
        vm.store(address(registry), slot, _record(0, 0, type(uint32).max, address(this)));
        bytes memory overflow = abi.encodeWithSignature("Panic(uint256)", 0x11);
        string memory cid = Reference.rawCid(DIGEST);
        vm.expectRevert(overflow);
        registry.publish("note", "1.0.0", cid, DIGEST);
        vm.store(address(registry), slot, _record(0, type(uint32).max, 0, address(this)));
        vm.expectRevert(overflow);
        registry.renounce("note");
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

    function test_Slot4HoldsBothFlags() public {
        _publish("note", "1.0.0");
        registry.deprecate("note", "1.0.0", 0, "");
        bytes32 text = bytes32(bytes.concat(hex"00", bytes1(uint8(5)), "1.0.0"));
        assertEq(_load(_releaseSlot(0)), text | bytes32(bytes1(0x02)), "deprecated");
        registry.yank("note", "1.0.0", 0, "");
        assertEq(_load(_releaseSlot(0)), text | bytes32(bytes1(0x03)), "and yanked");
        registry.undeprecate("note", "1.0.0", 0);
        assertEq(_load(_releaseSlot(0)), text | bytes32(bytes1(0x01)), "yanked only");
    }

    function test_Slot6HoldsOneForAMaintainer() public {
        _publish("note", "1.0.0");
        bytes32 byName = _k(keccak256("note"), bytes32(uint256(6)));
        bytes32 now_ = _k(_word(ALICE), _k(bytes32(uint256(0)), byName));
        bytes32 later = _k(_word(ALICE), _k(bytes32(uint256(1)), byName));
        registry.addMaintainer("note", ALICE);
        assertEq(_load(now_), bytes32(uint256(1)), "in epoch 0");
        assertEq(_load(later), 0, "not in epoch 1");
        registry.removeMaintainer("note", ALICE);
        assertEq(_load(now_), 0, "removed");
        handOver(address(this), BOB, "note");
        addMaintainer(BOB, "note", ALICE);
        assertEq(_load(later), bytes32(uint256(1)), "in epoch 1");
    }

    function test_Slot7HoldsWhoMayAccept() public {
        _publish("note", "1.0.0");
        bytes32 slot = _k(keccak256("note"), bytes32(uint256(7)));
        registry.offerTransfer("note", ALICE);
        assertEq(_load(slot), _word(ALICE), "offered");
        registry.cancelTransfer("note");
        assertEq(_load(slot), 0, "cancelled");
    }

    function test_Slot8HoldsTheTimeOfACommitment() public {
        registry = newRegistry(60, 1 days);
        vm.warp(1_800_000_000);
        bytes32 commitment = registry.commitmentOf("note", ALICE, SECRET);
        bytes32 slot = _k(commitment, bytes32(uint256(8)));
        registry.commit(commitment);
        assertEq(_load(slot), bytes32(uint256(1_800_000_000)), "made");
        vm.warp(1_800_000_060);
        claim(ALICE, "note");
        assertEq(_load(slot), bytes32(uint256(1_800_000_000)), "not cleared");
    }

    function test_Slot9HoldsTheNextNonce() public {
        uint256 key = 0xA11CE;
        address author = vm.addr(key);
        bytes32 slot = _k(_word(author), bytes32(uint256(9)));
        bytes memory signature =
            signDigest(key, digestOf(publication("note", "1.0.0"), author, 0, type(uint256).max));
        registry.publishWithSignature(publication("note", "1.0.0"), author, type(uint256).max, signature);
        assertEq(_load(slot), bytes32(uint256(1)), "nonce");
    }

    function testFuzz_TheOwnerIsTheLowestTwentyBytes(address owner) public {
        vm.assume(owner != address(0));
        vm.prank(owner);
        registry.publish("note", "1.0.0", Reference.rawCid(DIGEST), DIGEST);
        bytes32 word = _load(_k(keccak256("note"), bytes32(uint256(1))));
        assertEq(address(uint160(uint256(word))), owner, "owner");
        assertEq(uint256(word) >> 160, 1, "count of releases, and nothing above");
    }

    function _record(uint32 flags, uint32 epoch, uint32 count, address owner) private pure returns (bytes32) {
        return bytes32(abi.encodePacked(flags, epoch, count, owner));
    }

    function _word(address account) private pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
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
