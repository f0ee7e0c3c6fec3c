// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";
import {Vm} from "./Test.sol";

/// @notice What holds for the registry as a whole: its log, and that it takes no ether.
contract CapabilityRegistryTest is RegistryTest {
    uint256 private constant NOW = 1_800_000_000;
    uint256 private constant LATER = NOW + 60;

    // ------------------------------------------------------------------------------------------ log

    function test_TheLogIsZeroBeforeTheFirstEvent() public view {
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(head), 0, "head");
        assertEq(count, 0, "count");
    }

    function test_TheHeadIsTheFoldOfEverythingEmitted() public {
        vm.recordLogs();
        publish(address(this), "note", "1.0.0", DIGEST);
        publish(ALICE, "memo", SEMVER_31, ~DIGEST);
        registry.yank("note", "1.0.0", 0, "leaks");
        registry.unyank("note", "1.0.0", 0);

        bytes32 word;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 4, "one event a change");
        for (uint256 i; i < logs.length; ++i) {
            word = Reference.fold(word, logs[i].topics, logs[i].data);
            assertEq(abi.decode(logs[i].data, (uint64)), i + 1, "sequence");
        }
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(bytes.concat(head, bytes8(count))), word, "head and count");
    }

    function test_ARevertLeavesTheLogAlone() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        (bytes24 before,) = registry.log();
        vm.expectRevert();
        publish(BOB, "note", "1.0.1", DIGEST);
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(head), bytes32(before), "head");
        assertEq(count, 1, "count");
    }

    /// @dev The vectors were made by Python, which encodes and folds by its own means: one event of every kind.
    function test_TheLogIsTheOneOfTheVectors() public {
        string memory json = vectors("log.json");
        vm.warp(NOW);
        registry = newRegistry(60, 1 days);
        Vm.Log[] memory logs = _eventful();
        for (uint256 i; i < logs.length; ++i) {
            string memory what = string.concat("event ", vm.toString(i + 1));
            assertEq(logs[i].topics[0], wordField(json, "events", i, "topic0"), what);
            assertEq(logs[i].topics[1], wordField(json, "events", i, "topic1"), what);
            assertEq(logs[i].topics[2], wordField(json, "events", i, "topic2"), what);
            assertEq(keccak256(logs[i].data), keccak256(bytesField(json, "events", i, "data")), what);
        }
        assertTrue(!hasCase(json, "events", logs.length), "no event is missing");
        (bytes24 head, uint64 count) = registry.log();
        bytes32 word = wordField(json, "events", logs.length - 1, "log");
        assertEq(head | bytes32(uint256(count)), word, "head and count");
    }

    // ------------------------------------------------------------------------------------------ ether

    function test_RevertIf_SentEther() public {
        assertTrue(address(this).balance > 0, "there is ether to send");
        (bool sent,) = address(registry).call{value: 1}("");
        assertTrue(!sent, "no ether without a call");
        bytes memory call =
            abi.encodeCall(registry.publish, ("note", "1.0.0", Reference.rawCid(DIGEST), DIGEST));
        (sent,) = address(registry).call{value: 1}(call);
        assertTrue(!sent, "no ether with a call");
    }

    // ------------------------------------------------------------------------------------------ helpers

    /// @dev One change of every kind, the same as in `tests/contracts/make_vectors.py`.
    function _eventful() private returns (Vm.Log[] memory) {
        uint256 key = uint256(keccak256("Alice's key"));
        address author = vm.addr(key);
        bytes32 first = registry.commitmentOf("note", ALICE, SECRET);
        bytes32 second = registry.commitmentOf("memo", author, SECRET);
        ICapabilityRegistry.Publication memory one = publication("memo", "1.0.0");
        bytes memory signature = signDigest(key, digestOf(one, author, 0, LATER));

        vm.recordLogs();
        vm.startPrank(BOB);
        registry.commit(first);
        registry.commit(second);
        vm.warp(LATER);
        vm.startPrank(ALICE);
        registry.claim("note", SECRET);
        registry.publish("note", SEMVER_31, one.cid, DIGEST);
        registry.addMaintainer("note", CAROL);
        vm.startPrank(CAROL);
        registry.yank("note", SEMVER_31, 0, "leaks the user's token");
        registry.unyank("note", SEMVER_31, 0);
        vm.startPrank(ALICE);
        registry.deprecate("note", SEMVER_31, 0, unicode"请升级到 2.0.0 🙏");
        registry.undeprecate("note", SEMVER_31, 0);
        registry.removeMaintainer("note", CAROL);
        registry.deprecateName("note", "", "memo");
        registry.undeprecateName("note");
        vm.startPrank(BOB);
        registry.publishWithSignature(one, author, LATER, signature);
        vm.startPrank(ALICE);
        registry.offerTransfer("note", BOB);
        registry.cancelTransfer("note");
        registry.offerTransfer("note", CAROL);
        vm.startPrank(CAROL);
        registry.acceptTransfer("note");
        registry.renounce("note");
        vm.stopPrank();
        return vm.getRecordedLogs();
    }
}
