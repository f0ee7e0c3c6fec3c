// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";

/// @notice Alice is the author, Bob reads the mempool, and the ages are those of public chains.
contract CommitmentsTest is RegistryTest {
    uint256 private constant MIN = 60;
    uint256 private constant MAX = 1 days;
    uint256 private constant NOW = 1_800_000_000;

    function setUp() public {
        registry = newRegistry(MIN, MAX);
        vm.warp(NOW);
    }

    // ------------------------------------------------------------------------------------------ committing

    function test_CommitRemembersTheTimeAndEmitsCommitted() public {
        bytes32 commitment = registry.commitmentOf("note", ALICE, SECRET);
        assertEq(registry.committedAt(commitment), 0, "not before");
        expectEvent();
        emit ICapabilityRegistry.Committed(commitment, BOB, 1, uint64(NOW));
        vm.prank(BOB); // whoever sends it
        registry.commit(commitment);
        assertEq(registry.committedAt(commitment), NOW, "time");
    }

    function test_CommitmentsAreTheHashesOfTheVectors() public view {
        string memory json = vectors("ids.json");
        uint256 i;
        for (; hasCase(json, "commitments", i); ++i) {
            string memory name = field(json, "commitments", i, "name");
            address claimer = addressField(json, "commitments", i, "claimer");
            bytes32 secret = wordField(json, "commitments", i, "secret");
            bytes32 expected = wordField(json, "commitments", i, "commitment");
            assertEq(registry.commitmentOf(name, claimer, secret), expected, name);
        }
        assertTrue(i > 3, "there are vectors");
    }

    function test_ACommitmentCannotBeMadeYoungerBeforeItExpires() public {
        bytes32 commitment = _commit(ALICE, "note");
        bytes memory why =
            abi.encodeWithSelector(ICapabilityRegistry.CommitmentExists.selector, commitment, NOW + MAX);
        refused(BOB, why);
        registry.commit(commitment);
        vm.warp(NOW + MAX); // the last second in which it counts
        refused(ALICE, why);
        registry.commit(commitment);
        vm.warp(NOW + MAX + 1);
        registry.commit(commitment);
        assertEq(registry.committedAt(commitment), NOW + MAX + 1, "made again");
    }

    function test_RevertIf_NoCommitmentIsNeeded() public {
        registry = newRegistry(0, 0);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.CommitmentNotNeeded.selector));
        registry.commit(SECRET);
        claim(ALICE, "note");
    }

    function testFuzz_TheAgesLeaveATimeToReveal(uint256 min, uint256 max) public {
        if (min != 0 && min >= max) {
            vm.expectRevert(
                abi.encodeWithSelector(ICapabilityRegistry.InvalidCommitmentAges.selector, min, max)
            );
            newRegistry(min, max);
            return;
        }
        registry = newRegistry(min, max);
        assertEq(registry.MIN_COMMITMENT_AGE(), min, "minimum");
        assertEq(registry.MAX_COMMITMENT_AGE(), max, "maximum");
    }

    // ------------------------------------------------------------------------------------------ revealing

    function test_AClaimCountsFromTheFirstSecondToTheLast() public {
        bytes32 commitment = _commit(ALICE, "note");
        _commit(ALICE, "memo");
        vm.warp(NOW + MIN - 1);
        refused(
            ALICE,
            abi.encodeWithSelector(ICapabilityRegistry.CommitmentTooYoung.selector, commitment, NOW + MIN)
        );
        registry.claim("note", SECRET);
        vm.warp(NOW + MIN);
        claim(ALICE, "note");
        vm.warp(NOW + MAX);
        claim(ALICE, "memo");
    }

    function test_RevertIf_TheCommitmentHasExpired() public {
        bytes32 commitment = _commit(ALICE, "note");
        vm.warp(NOW + MAX + 1);
        refused(
            ALICE,
            abi.encodeWithSelector(ICapabilityRegistry.CommitmentExpired.selector, commitment, NOW + MAX)
        );
        registry.claim("note", SECRET);
    }

    function testFuzz_AClaimCountsWhenItsAgeDoes(uint256 age) public {
        age %= 2 * MAX;
        bytes32 commitment = _commit(ALICE, "note");
        vm.warp(NOW + age);
        bytes memory why;
        if (age < MIN) {
            why = abi.encodeWithSelector(
                ICapabilityRegistry.CommitmentTooYoung.selector, commitment, NOW + MIN
            );
        } else if (age > MAX) {
            why =
                abi.encodeWithSelector(ICapabilityRegistry.CommitmentExpired.selector, commitment, NOW + MAX);
        }
        if (why.length != 0) vm.expectRevert(why);
        claim(ALICE, "note");
        assertEq(registry.ownerOf("note"), why.length == 0 ? ALICE : NOBODY, "owner");
    }

    function test_RevertIf_AnyPartOfTheCommitmentDiffers() public {
        _commit(ALICE, "note");
        vm.warp(NOW + MIN);
        _isMissing(ALICE, "memo", SECRET);
        _isMissing(BOB, "note", SECRET);
        _isMissing(ALICE, "note", ~SECRET);
    }

    function test_EveryWayToAFreeNameTakesACommitment() public {
        _commit(ALICE, "claimed");
        _commit(ALICE, "published");
        _commit(ALICE, "batched");
        bytes32 guessable = registry.commitmentOf("bare", ALICE, 0);
        registry.commit(guessable);
        vm.warp(NOW + MIN);
        string memory cid = Reference.rawCid(DIGEST);

        claim(ALICE, "claimed");
        vm.prank(ALICE);
        registry.claimAndPublish("published", "1.0.0", cid, DIGEST, SECRET);
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](1);
        batch[0] = publication("batched", "1.0.0");
        vm.prank(ALICE);
        registry.publishBatch(batch);
        publish(ALICE, "bare", "1.0.0"); // by the one with the secret zero

        bytes32 missing = registry.commitmentOf("other", ALICE, 0);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.CommitmentMissing.selector, missing));
        registry.publish("other", "1.0.0", cid, DIGEST);
        batch[0].name = "another";
        missing = registry.commitmentOf("another", ALICE, SECRET);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.CommitmentMissing.selector, missing));
        registry.publishBatch(batch);
    }

    function test_AnOwnedNameTakesNoCommitment() public {
        _commit(ALICE, "note");
        vm.warp(NOW + MIN);
        claim(ALICE, "note");
        vm.warp(NOW + 10 * MAX);
        publish(ALICE, "note", "1.0.0");
    }

    // ------------------------------------------------------------------------------------------ in the mempool

    function test_ACopyOfTheClaimIsWorthNothing() public {
        _commit(ALICE, "note");
        vm.warp(NOW + MIN);
        _isMissing(BOB, "note", SECRET); // Bob copies it, and is mined first
        claim(ALICE, "note");
        assertEq(registry.ownerOf("note"), ALICE, "the first committer");
    }

    function test_ACommitmentMadeOnSeeingTheClaimIsTooYoung() public {
        _commit(ALICE, "note");
        vm.warp(NOW + MIN);
        bytes32 late = _commit(BOB, "note"); // he has read the name in her claim
        refused(
            BOB, abi.encodeWithSelector(ICapabilityRegistry.CommitmentTooYoung.selector, late, NOW + 2 * MIN)
        );
        registry.claim("note", SECRET);
        claim(ALICE, "note");
        vm.warp(NOW + 2 * MIN);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.NameClaimed.selector, "note", ALICE));
        registry.claim("note", SECRET);
    }

    function test_ACopyOfTheCommitmentHelpsItsMaker() public {
        bytes32 commitment = registry.commitmentOf("note", ALICE, SECRET);
        vm.prank(BOB); // he sends the same one before her
        registry.commit(commitment);
        vm.warp(NOW + 1);
        refused(
            ALICE,
            abi.encodeWithSelector(ICapabilityRegistry.CommitmentExists.selector, commitment, NOW + MAX)
        );
        registry.commit(commitment);
        vm.warp(NOW + MIN);
        claim(ALICE, "note");
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _commit(address claimer, string memory name) private returns (bytes32 commitment) {
        commitment = registry.commitmentOf(name, claimer, SECRET);
        vm.prank(claimer);
        registry.commit(commitment);
    }

    function _isMissing(address claimer, string memory name, bytes32 secret) private {
        bytes32 commitment = registry.commitmentOf(name, claimer, secret);
        refused(claimer, abi.encodeWithSelector(ICapabilityRegistry.CommitmentMissing.selector, commitment));
        registry.claim(name, secret);
    }
}
