// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {RegistryTest} from "./RegistryTest.sol";

contract NameOwnershipTest is RegistryTest {
    // ------------------------------------------------------------------------------------------ claim

    function test_ClaimGivesTheNameWithoutARelease() public {
        expectEvent();
        emit ICapabilityRegistry.Claimed(keccak256("notes-1sts"), ALICE, 1, "notes-1sts");
        claim(ALICE, "notes-1sts");
        _recordIs("notes-1sts", ALICE, NOBODY, 0, 0, false);
        assertEq(registry.nameOfSkeleton("noteslsts"), "notes-1sts", "name of the skeleton");
        assertEq(registry.nameOfSkeleton("notes-1sts"), "", "a name that is no skeleton");
    }

    function test_AClaimedNameIsPublishedUnderByItsOwner() public {
        claim(ALICE, "note");
        refused(BOB, notMaintainer("note", BOB));
        registry.publish("note", "1.0.0", "", DIGEST);
        publish(ALICE, "note", "1.0.0");
        _recordIs("note", ALICE, NOBODY, 1, 0, false);
    }

    function test_RevertIf_ANameIsClaimedAgain() public {
        claim(ALICE, "note");
        bytes memory why = abi.encodeWithSelector(ICapabilityRegistry.NameClaimed.selector, "note", ALICE);
        refused(BOB, why);
        registry.claim("note", SECRET);
        refused(ALICE, why);
        registry.claim("note", SECRET);
    }

    function test_RevertIf_NameIsInvalid() public {
        string memory json = vectors("names.json");
        for (uint256 i; hasCase(json, "invalid", i); ++i) {
            string memory name = field(json, "invalid", i, "name");
            bytes memory why = abi.encodeWithSelector(ICapabilityRegistry.InvalidName.selector, name);
            vm.expectRevert(why);
            registry.claim(name, SECRET);
            vm.expectRevert(why);
            registry.publish(name, "1.0.0", "", DIGEST);
            vm.expectRevert(why);
            registry.isReserved(name);
        }
    }

    function test_RevertIf_NameLooksLikeAnother() public {
        string memory json = vectors("names.json");
        for (uint256 i; hasCase(json, "lookalikes", i); ++i) {
            registry = newRegistry(0, 0);
            string memory takenBy = field(json, "lookalikes", i, "taken_by");
            string memory name = field(json, "lookalikes", i, "name");
            claim(ALICE, takenBy);
            bytes memory why = abi.encodeWithSelector(ICapabilityRegistry.NameTaken.selector, name, takenBy);
            refused(ALICE, why); // not even to the same owner
            registry.claim(name, SECRET);
            refused(BOB, why);
            registry.publish(name, "1.0.0", "", DIGEST);
            assertEq(registry.ownerOf(name), NOBODY, "owner of the lookalike");
        }
    }

    // ------------------------------------------------------------------------------------------ reserved words

    function test_RevertIf_NameIsReservedOrLooksReserved() public {
        string memory json = vectors("reserved.json");
        _allReserved(json, "reserved");
        _allReserved(json, "lookalikes");
    }

    function test_WhatOnlyComesNearAReservedWordIsFree() public {
        string memory json = vectors("reserved.json");
        uint256 i;
        for (; hasCase(json, "free", i); ++i) {
            string memory name = field(json, "free", i, "name");
            assertTrue(!registry.isReserved(name), name);
            claim(ALICE, name);
        }
        assertTrue(i > 10, "there are vectors");
    }

    // ------------------------------------------------------------------------------------------ maintainers

    function test_AddAndRemoveAMaintainer() public {
        claim(ALICE, "note");
        assertTrue(!registry.isMaintainer("note", BOB), "not before");
        expectEvent();
        emit ICapabilityRegistry.MaintainerAdded(keccak256("note"), ALICE, 2, "note", BOB);
        addMaintainer(ALICE, "note", BOB);
        assertTrue(registry.isMaintainer("note", BOB), "maintainer");
        assertTrue(!registry.isMaintainer("note", ALICE), "an owner is none");
        assertTrue(!registry.isMaintainer("memo", BOB), "of this name only");

        expectEvent();
        emit ICapabilityRegistry.MaintainerRemoved(keccak256("note"), ALICE, 3, "note", BOB);
        vm.prank(ALICE);
        registry.removeMaintainer("note", BOB);
        assertTrue(!registry.isMaintainer("note", BOB), "not after");
    }

    function test_AMaintainerMayLeave() public {
        claim(ALICE, "note");
        addMaintainer(ALICE, "note", BOB);
        expectEvent();
        emit ICapabilityRegistry.MaintainerRemoved(keccak256("note"), BOB, 3, "note", BOB);
        vm.prank(BOB);
        registry.removeMaintainer("note", BOB);
    }

    function test_AMaintainerMayDoNothingThatIsAboutTheName() public {
        claim(ALICE, "note");
        addMaintainer(ALICE, "note", BOB);
        addMaintainer(ALICE, "note", CAROL);
        _onlyTheOwner("note", BOB);
        refused(BOB, notOwner("note", BOB));
        registry.removeMaintainer("note", CAROL);
    }

    function testFuzz_OnlyTheOwnerChangesTheName(address other) public {
        vm.assume(other != ALICE && other != NOBODY && other != CAROL);
        claim(ALICE, "note");
        addMaintainer(ALICE, "note", CAROL);
        _onlyTheOwner("note", other);
        _onlyTheOwner("none", other); // a name that nobody owns is no different
        refused(other, notOwner("note", other));
        registry.removeMaintainer("note", CAROL);
    }

    function test_RevertIf_AMaintainerStaysWhatItIs() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.MaintainerUnchanged.selector, "note", BOB));
        registry.removeMaintainer("note", BOB);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.MaintainerUnchanged.selector, "note", BOB));
        registry.removeMaintainer("note", BOB);
        addMaintainer(ALICE, "note", BOB);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.MaintainerUnchanged.selector, "note", BOB));
        registry.addMaintainer("note", BOB);
    }

    function test_RevertIf_NobodyOrTheOwnerIsMadeAMaintainer() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.InvalidRecipient.selector, "note", NOBODY));
        registry.addMaintainer("note", NOBODY);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.InvalidRecipient.selector, "note", ALICE));
        registry.addMaintainer("note", ALICE);
    }

    // ------------------------------------------------------------------------------------------ transfers

    function test_ATransferTakesAnOfferAndItsAcceptance() public {
        claim(ALICE, "note");
        expectEvent();
        emit ICapabilityRegistry.TransferOffered(keccak256("note"), ALICE, 2, "note", BOB);
        vm.prank(ALICE);
        registry.offerTransfer("note", BOB);
        _recordIs("note", ALICE, BOB, 0, 0, false);

        expectEvent();
        emit ICapabilityRegistry.Transferred(keccak256("note"), BOB, 3, "note", ALICE);
        vm.prank(BOB);
        registry.acceptTransfer("note");
        _recordIs("note", BOB, NOBODY, 0, 1, false);
        publish(BOB, "note", "1.0.0");
        refused(ALICE, notMaintainer("note", ALICE));
        registry.publish("note", "1.0.1", "", DIGEST);
    }

    function test_ATransferClearsMaintainersAndKeepsReleasesAndDeprecation() public {
        publish(ALICE, "note", "1.0.0");
        addMaintainer(ALICE, "note", BOB);
        addMaintainer(ALICE, "note", CAROL);
        vm.prank(ALICE);
        registry.deprecateName("note", "", "");
        handOver(ALICE, BOB, "note"); // to one of them, too
        assertTrue(!registry.isMaintainer("note", BOB), "the new owner is none");
        assertTrue(!registry.isMaintainer("note", CAROL), "nor is the other");
        refused(CAROL, notMaintainer("note", CAROL));
        registry.publish("note", "1.0.1", "", DIGEST);
        _recordIs("note", BOB, NOBODY, 1, 1, true);
        assertEq(registry.release("note", "1.0.0").sha256, DIGEST, "release");
        handOver(BOB, ALICE, "note"); // and back: what she granted stays void
        assertTrue(!registry.isMaintainer("note", CAROL), "not again");
    }

    function test_ANewOfferReplacesTheOldOne() public {
        claim(ALICE, "note");
        vm.prank(ALICE);
        registry.offerTransfer("note", BOB);
        vm.prank(ALICE);
        registry.offerTransfer("note", CAROL);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", BOB));
        registry.acceptTransfer("note");
        vm.prank(CAROL);
        registry.acceptTransfer("note");
        assertEq(registry.ownerOf("note"), CAROL, "owner");
    }

    function test_AnOfferCanBeTakenBack() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", ALICE));
        registry.cancelTransfer("note");
        vm.prank(ALICE);
        registry.offerTransfer("note", BOB);
        expectEvent();
        emit ICapabilityRegistry.TransferCancelled(keccak256("note"), ALICE, 3, "note");
        vm.prank(ALICE);
        registry.cancelTransfer("note");
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", BOB));
        registry.acceptTransfer("note");
        _recordIs("note", ALICE, NOBODY, 0, 0, false);
    }

    function testFuzz_OnlyTheRecipientAccepts(address recipient, address other) public {
        vm.assume(recipient != NOBODY && recipient != ALICE && other != recipient && other != NOBODY);
        claim(ALICE, "note");
        vm.prank(ALICE);
        registry.offerTransfer("note", recipient);
        refused(other, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", other));
        registry.acceptTransfer("note");
        vm.prank(recipient);
        registry.acceptTransfer("note");
        assertEq(registry.ownerOf("note"), recipient, "owner");
        refused(recipient, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", recipient));
        registry.acceptTransfer("note"); // an offer is accepted once
    }

    function test_RevertIf_OfferedToNobodyOrToTheOwner() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.InvalidRecipient.selector, "note", NOBODY));
        registry.offerTransfer("note", NOBODY);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.InvalidRecipient.selector, "note", ALICE));
        registry.offerTransfer("note", ALICE);
    }

    // ------------------------------------------------------------------------------------------ renouncing

    function test_RenounceLeavesTheNameToNobodyForEver() public {
        publish(ALICE, "note", "1.0.0");
        addMaintainer(ALICE, "note", BOB);
        expectEvent();
        emit ICapabilityRegistry.Renounced(keccak256("note"), ALICE, 3, "note");
        renounce(ALICE, "note");
        _recordIs("note", NOBODY, NOBODY, 1, 1, false);
        assertEq(registry.release("note", "1.0.0").sha256, DIGEST, "its releases stay");
        assertTrue(!registry.isMaintainer("note", BOB), "its maintainers do not");
        for (uint160 i; i < 3; ++i) {
            address anyone = [ALICE, BOB, CAROL][i];
            refused(anyone, abi.encodeWithSelector(ICapabilityRegistry.NameClaimed.selector, "note", NOBODY));
            registry.claim("note", SECRET);
            refused(anyone, notMaintainer("note", anyone));
            registry.publish("note", "2.0.0", "", DIGEST);
            refused(anyone, notMaintainer("note", anyone));
            registry.yank("note", "1.0.0", 0, "");
            _onlyTheOwner("note", anyone);
        }
    }

    function test_ASkeletonIsNotFreeAfterRenouncing() public {
        claim(ALICE, "note");
        renounce(ALICE, "note");
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.NameTaken.selector, "n0te", "note"));
        registry.claim("n0te", SECRET);
        assertEq(registry.nameOfSkeleton("note"), "note", "name of the skeleton");
    }

    function test_AnOfferEndsWithRenouncing() public {
        claim(ALICE, "note");
        vm.prank(ALICE);
        registry.offerTransfer("note", BOB);
        renounce(ALICE, "note");
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.NoOffer.selector, "note", BOB));
        registry.acceptTransfer("note");
    }

    // ------------------------------------------------------------------------------------------ deprecation

    function test_ANameIsDeprecatedAndUndeprecated() public {
        claim(ALICE, "note");
        expectEvent();
        emit ICapabilityRegistry.NameDeprecated(keccak256("note"), ALICE, 2, "note", "moved", "memo-2");
        vm.prank(ALICE);
        registry.deprecateName("note", "moved", "memo-2");
        _recordIs("note", ALICE, NOBODY, 0, 0, true);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.AlreadyDeprecated.selector, "note", ""));
        registry.deprecateName("note", "", "");

        expectEvent();
        emit ICapabilityRegistry.NameUndeprecated(keccak256("note"), ALICE, 3, "note");
        vm.prank(ALICE);
        registry.undeprecateName("note");
        _recordIs("note", ALICE, NOBODY, 0, 0, false);
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.NotDeprecated.selector, "note", ""));
        registry.undeprecateName("note");
    }

    function test_ANameIsReplacedByANameOrByNone() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.InvalidName.selector, "No Name"));
        registry.deprecateName("note", "", "No Name");
        vm.prank(ALICE);
        registry.deprecateName("note", "", "");
    }

    function test_AMessageHasAtMost500Bytes() public {
        claim(ALICE, "note");
        refused(ALICE, abi.encodeWithSelector(ICapabilityRegistry.ReasonTooLong.selector, 501));
        registry.deprecateName("note", string(new bytes(501)), "");
        vm.prank(ALICE);
        registry.deprecateName("note", string(new bytes(500)), "");
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _recordIs(
        string memory name,
        address owner,
        address pendingOwner,
        uint256 count,
        uint256 epoch,
        bool deprecated
    ) private view {
        (address owner_, address pending_, uint32 count_, uint32 epoch_, bool deprecated_) =
            registry.nameRecord(name);
        assertEq(owner_, owner, "owner");
        assertEq(registry.ownerOf(name), owner, "ownerOf");
        assertEq(pending_, pendingOwner, "pending owner");
        assertEq(count_, count, "releases");
        assertEq(registry.releaseCount(name), count, "releaseCount");
        assertEq(epoch_, epoch, "epoch");
        assertTrue(deprecated_ == deprecated, "deprecated");
    }

    function _onlyTheOwner(string memory name, address other) private {
        bytes memory why = notOwner(name, other);
        refused(other, why);
        registry.addMaintainer(name, address(1));
        refused(other, why);
        registry.offerTransfer(name, other);
        refused(other, why);
        registry.cancelTransfer(name);
        refused(other, why);
        registry.renounce(name);
        refused(other, why);
        registry.deprecateName(name, "", "");
        refused(other, why);
        registry.undeprecateName(name);
    }

    function _allReserved(string memory json, string memory group) private {
        uint256 i;
        for (; hasCase(json, group, i); ++i) {
            string memory name = field(json, group, i, "name");
            assertTrue(registry.isReserved(name), name);
            bytes memory why = abi.encodeWithSelector(ICapabilityRegistry.NameReserved.selector, name);
            vm.expectRevert(why);
            registry.claim(name, SECRET);
            vm.expectRevert(why);
            registry.publish(name, "1.0.0", "", DIGEST);
        }
        assertTrue(i > 10, "there are vectors");
    }
}
