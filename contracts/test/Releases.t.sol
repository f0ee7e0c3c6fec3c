// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";

contract ReleasesTest is RegistryTest {
    // ------------------------------------------------------------------------------------------ publish

    function test_PublishGivesTheNameToThePublisher() public {
        assertEq(registry.ownerOf("note"), address(0), "owner before");
        publish(ALICE, "note", "1.0.0", DIGEST);
        assertEq(registry.ownerOf("note"), ALICE, "owner");
        assertEq(registry.nameOfSkeleton("note"), "note", "name of the skeleton");
    }

    function test_PublishEmitsPublished() public {
        expectEvent();
        emit ICapabilityRegistry.Published(
            keccak256("note"),
            ALICE,
            1,
            "did:nuwa:cap:note@1.0.0-rc.1",
            "1.0.0-rc.1",
            Reference.rawCid(DIGEST),
            DIGEST
        );
        publish(ALICE, "note", "1.0.0-rc.1", DIGEST);
    }

    function test_PublishedReleaseReadsBack() public {
        publish(ALICE, "note", "1.2.3", DIGEST);
        ICapabilityRegistry.Release memory release = registry.release("note", "1.2.3");
        assertEq(release.capUri, "did:nuwa:cap:note@1.2.3", "capUri");
        assertEq(release.semver, "1.2.3", "semver");
        assertEq(release.cid, Reference.rawCid(DIGEST), "cid");
        assertEq(release.sha256, DIGEST, "sha256");
        assertTrue(!release.yanked && !release.deprecated, "no flags");
    }

    function test_ReleasesMayComeInAnyOrderOfVersions() public {
        publish(ALICE, "note", "2.0.0", DIGEST);
        publish(ALICE, "note", "1.2.1", DIGEST);
        assertEq(registry.indexOf("note", "2.0.0"), 0, "first");
        assertEq(registry.indexOf("note", "1.2.1"), 1, "second");
    }

    function test_OneDigestMayBePublishedUnderSeveralVersionsAndNames() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        publish(ALICE, "note", "1.0.1", DIGEST);
        publish(BOB, "memo", "1.0.0", DIGEST);
        assertEq(registry.release("memo", "1.0.0").sha256, DIGEST, "digest");
    }

    function test_LongVersionsReadBackLikeShortOnes() public {
        publish(ALICE, "note", SEMVER_31, DIGEST);
        publish(ALICE, "note", SEMVER_30, ~DIGEST);
        assertEq(registry.release("note", SEMVER_31).semver, SEMVER_31, "31 characters");
        assertEq(registry.release("note", SEMVER_30).semver, SEMVER_30, "30 characters");
        assertEq(registry.indexOf("note", SEMVER_31), 0, "index of the long one");
        assertEq(registry.indexOf("note", SEMVER_30), 1, "index of the short one");
    }

    /// @dev The bytes behind a text in calldata are the sender's to choose, and no part of it.
    function test_WhatIsBehindATextInCalldataIsNeitherStoredNorLogged() public {
        string memory cid = Reference.rawCid(DIGEST);
        bytes memory call = abi.encodePacked(
            registry.publish.selector,
            abi.encode(uint256(128), uint256(192), uint256(256), DIGEST),
            abi.encodePacked(uint256(4), "note", ~bytes28(0)),
            abi.encodePacked(uint256(5), "1.0.0", ~bytes27(0)),
            abi.encodePacked(uint256(59), cid, ~bytes5(0))
        );
        vm.recordLogs();
        (bool done,) = address(registry).call(call);
        assertTrue(done, "published");
        bytes memory clean = abi.encode(uint64(1), "did:nuwa:cap:note@1.0.0", "1.0.0", cid, DIGEST);
        assertEq(keccak256(vm.getRecordedLogs()[0].data), keccak256(clean), "data of the event");
        bytes32 releases = keccak256(abi.encode(keccak256("note"), 4));
        bytes32 word = vm.load(address(registry), keccak256(abi.encode(0, releases)));
        assertEq(word, bytes32(bytes7(hex"0005312e302e30")), "word of the release");
        assertEq(registry.indexOf("note", "1.0.0"), 0, "found");
    }

    function test_RevertIf_TwoEntriesOfABatchAreOnePlaceInCalldata() public {
        bytes memory entry = abi.encode(publication("note", "1.0.0")); // begins with its own offset
        bytes memory heads = abi.encode(uint256(32), uint256(2), uint256(96), uint256(96));
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.VersionAlreadyPublished.selector, "note", "1.0.0")
        );
        (bool done,) = address(registry).call(bytes.concat(registry.publishBatch.selector, heads, entry));
        done; // forge has looked at it
        assertEq(registry.releaseCount("note"), 0, "nothing");
    }

    function test_RevertIf_NameBelongsToAnother() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NotMaintainer.selector, "note", BOB));
        publish(BOB, "note", "2.0.0", DIGEST);
    }

    function test_RevertIf_VersionIsInvalid() public {
        string memory json = vectors("versions.json");
        for (uint256 i; hasCase(json, "invalid", i); ++i) {
            string memory semver = field(json, "invalid", i, "semver");
            vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.InvalidSemVer.selector, semver));
            publish(ALICE, "note", semver, DIGEST);
        }
    }

    function test_RevertIf_DigestIsZero() public {
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.ZeroDigest.selector));
        publish(ALICE, "note", "1.0.0", 0);
    }

    function test_RevertIf_CidDoesNotSpellTheDigest() public {
        string memory json = vectors("cids.json");
        for (uint256 i; hasCase(json, "invalid", i); ++i) {
            string memory cid = field(json, "invalid", i, "cid");
            bytes32 digest = wordField(json, "invalid", i, "sha256");
            vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.CidMismatch.selector, cid, digest));
            registry.publish("note", "1.0.0", cid, digest);
        }
    }

    function test_RevertIf_VersionIsPublishedAlready() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        vm.prank(ALICE);
        registry.yank("note", "1.0.0", 0, "");
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.VersionAlreadyPublished.selector, "note", "1.0.0")
        );
        publish(ALICE, "note", "1.0.0", ~DIGEST); // a yank does not set it free
    }

    function testFuzz_AnyValidReleaseReadsBack(uint64 major, uint64 minor, bytes32 digest, address by)
        public
    {
        vm.assume(digest != 0 && by != NOBODY);
        string memory semver = string.concat(
            vm.toString(major % 1e15), ".", vm.toString(minor % 1e15), ".0-rc.", vm.toString(minor % 7)
        );
        publish(by, "note", semver, digest);
        ICapabilityRegistry.Release memory release = registry.releases("note", 0, 1)[0];
        assertEq(release.capUri, string.concat("did:nuwa:cap:note@", semver), "capUri");
        assertEq(release.semver, semver, "semver");
        assertEq(release.cid, Reference.rawCid(digest), "cid");
        assertEq(release.sha256, digest, "sha256");
        assertEq(
            keccak256(abi.encode(release)), keccak256(abi.encode(registry.release("note", semver))), "one"
        );
        assertEq(registry.indexOf("note", semver), 0, "index");
    }

    function testFuzz_AnyOtherCharacterInTheCidIsRefused(bytes32 digest, uint256 place, bytes1 char) public {
        vm.assume(digest != 0);
        string memory cid = Reference.rawCid(digest);
        place %= bytes(cid).length;
        vm.assume(bytes(cid)[place] != char);
        bytes(cid)[place] = char;
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.CidMismatch.selector, cid, digest));
        registry.publish("note", "1.0.0", cid, digest);
    }

    // ------------------------------------------------------------------------------------------ yank, unyank

    function test_YankMarksTheReleaseAndEmitsYanked() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        publish(ALICE, "note", "1.0.1", DIGEST);
        expectEvent();
        emit ICapabilityRegistry.Yanked(keccak256("note"), ALICE, 3, "note", "1.0.1", "leaks");
        vm.prank(ALICE);
        registry.yank("note", "1.0.1", 1, "leaks");
        assertTrue(registry.release("note", "1.0.1").yanked, "yanked");
        assertTrue(!registry.release("note", "1.0.1").deprecated, "not deprecated");
        assertTrue(!registry.release("note", "1.0.0").yanked, "the other is not yanked");
    }

    function test_UnyankTakesItBackAndEmitsUnyanked() public {
        publish(ALICE, "note", SEMVER_31, DIGEST);
        bytes32 before = keccak256(abi.encode(registry.release("note", SEMVER_31)));
        vm.prank(ALICE);
        registry.yank("note", SEMVER_31, 0, "");
        expectEvent();
        emit ICapabilityRegistry.Unyanked(keccak256("note"), ALICE, 3, "note", SEMVER_31);
        vm.prank(ALICE);
        registry.unyank("note", SEMVER_31, 0);
        assertEq(keccak256(abi.encode(registry.release("note", SEMVER_31))), before, "release as it was");
    }

    function test_RevertIf_YankedTwiceOrUnyankedTwice() public {
        publish(address(this), "note", "1.0.0", DIGEST);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NotYanked.selector, "note", "1.0.0"));
        registry.unyank("note", "1.0.0", 0);
        registry.yank("note", "1.0.0", 0, "");
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.AlreadyYanked.selector, "note", "1.0.0"));
        registry.yank("note", "1.0.0", 0, "");
    }

    function test_RevertIf_AnotherYanksOrUnyanks() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        bytes memory notOwner =
            abi.encodeWithSelector(ICapabilityRegistry.NotMaintainer.selector, "note", BOB);
        vm.expectRevert(notOwner);
        vm.prank(BOB);
        registry.yank("note", "1.0.0", 0, "");
        vm.expectRevert(notOwner);
        vm.prank(BOB);
        registry.unyank("note", "1.0.0", 0);
    }

    function test_RevertIf_NameVersionAndIndexDisagree() public {
        publish(address(this), "note", "1.0.0", DIGEST);
        publish(address(this), "note", SEMVER_31, DIGEST);
        publish(address(this), "memo", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "1.0.0", 1);
        _revertsAsNoSuchRelease("note", SEMVER_31, 0);
        _revertsAsNoSuchRelease("note", "1.0.0-abcdefghijklmnopqrstuvwxz", 1);
        _revertsAsNoSuchRelease("note", "1.0.0", 2);
        _revertsAsNoSuchRelease("note", "1.0.0", type(uint256).max);
        _revertsAsNoSuchRelease("memo", SEMVER_31, 0);
        _revertsAsNoSuchRelease("none", "1.0.0", 0);
    }

    function test_RevertIf_EmptyVersionMeetsAnEmptyWord() public {
        publish(address(this), "note", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "", 1);
        _revertsAsNoSuchRelease("none", "", 0);
        _revertsAsNoSuchRelease("", "", 0);
    }

    function test_RevertIf_VersionHasWrongBytesWhereTheWordHasNone() public {
        publish(address(this), "note", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "1.0.0\x00", 0);
        _revertsAsNoSuchRelease("note", "1.0.", 0);
        // A length of 5 modulo 256 must not pass for a length of 5.
        _revertsAsNoSuchRelease("note", string(abi.encodePacked("1.0.0", new bytes(256))), 0);
    }

    function test_ReasonsAndMessagesHaveAtMost500Bytes() public {
        publish(address(this), "note", "1.0.0", DIGEST);
        bytes memory tooLong = abi.encodeWithSelector(ICapabilityRegistry.ReasonTooLong.selector, 501);
        vm.expectRevert(tooLong);
        registry.yank("note", "1.0.0", 0, string(new bytes(501)));
        vm.expectRevert(tooLong);
        registry.deprecate("note", "1.0.0", 0, string(new bytes(501)));
        registry.yank("note", "1.0.0", 0, string(new bytes(500)));
        registry.deprecate("note", "1.0.0", 0, string(new bytes(500)));
    }

    // ------------------------------------------------------------------------------------------ deprecate, undeprecate

    function test_DeprecateMarksTheReleaseAndEmitsDeprecated() public {
        publish(ALICE, "note", "1.0.0");
        publish(ALICE, "note", SEMVER_31);
        expectEvent();
        emit ICapabilityRegistry.Deprecated(keccak256("note"), ALICE, 3, "note", SEMVER_31, "take 2.0.0");
        vm.prank(ALICE);
        registry.deprecate("note", SEMVER_31, 1, "take 2.0.0");
        assertTrue(registry.release("note", SEMVER_31).deprecated, "deprecated");
        assertTrue(!registry.release("note", SEMVER_31).yanked, "not yanked");
        assertTrue(!registry.release("note", "1.0.0").deprecated, "the other is not deprecated");
    }

    function test_UndeprecateTakesItBackAndEmitsUndeprecated() public {
        publish(address(this), "note", "1.0.0");
        bytes32 before = keccak256(abi.encode(registry.release("note", "1.0.0")));
        registry.deprecate("note", "1.0.0", 0, "");
        expectEvent();
        emit ICapabilityRegistry.Undeprecated(keccak256("note"), address(this), 3, "note", "1.0.0");
        registry.undeprecate("note", "1.0.0", 0);
        assertEq(keccak256(abi.encode(registry.release("note", "1.0.0"))), before, "release as it was");
    }

    function test_RevertIf_DeprecatedTwiceOrUndeprecatedTwice() public {
        publish(address(this), "note", "1.0.0");
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NotDeprecated.selector, "note", "1.0.0"));
        registry.undeprecate("note", "1.0.0", 0);
        registry.deprecate("note", "1.0.0", 0, "");
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.AlreadyDeprecated.selector, "note", "1.0.0")
        );
        registry.deprecate("note", "1.0.0", 0, "");
    }

    function testFuzz_TheTwoFlagsAreIndependent(bool[16] memory yanks) public {
        publish(address(this), "note", "1.0.0");
        bool yanked;
        bool deprecated;
        for (uint256 i; i < yanks.length; ++i) {
            if (yanks[i]) {
                if (yanked) registry.unyank("note", "1.0.0", 0);
                else registry.yank("note", "1.0.0", 0, "");
                yanked = !yanked;
            } else {
                if (deprecated) registry.undeprecate("note", "1.0.0", 0);
                else registry.deprecate("note", "1.0.0", 0, "");
                deprecated = !deprecated;
            }
            ICapabilityRegistry.Release memory release = registry.release("note", "1.0.0");
            assertTrue(release.yanked == yanked && release.deprecated == deprecated, "flags");
            assertEq(release.semver, "1.0.0", "semver");
            assertEq(release.sha256, DIGEST, "sha256");
        }
    }

    // ------------------------------------------------------------------------------------------ who may

    function test_AMaintainerDoesAllThatIsAboutReleases() public {
        publish(ALICE, "note", "1.0.0");
        addMaintainer(ALICE, "note", BOB);
        publish(BOB, "note", "1.0.1");
        vm.prank(BOB);
        registry.yank("note", "1.0.0", 0, "");
        vm.prank(BOB);
        registry.unyank("note", "1.0.0", 0);
        vm.prank(BOB);
        registry.deprecate("note", "1.0.0", 0, "");
        vm.prank(BOB);
        registry.undeprecate("note", "1.0.0", 0);
        assertEq(registry.ownerOf("note"), ALICE, "owner");
    }

    function testFuzz_NobodyElseTouchesReleases(address other) public {
        vm.assume(other != ALICE && other != BOB && other != NOBODY);
        publish(ALICE, "note", "1.0.0");
        addMaintainer(ALICE, "note", BOB);
        bytes memory why = notMaintainer("note", other);
        string memory cid = Reference.rawCid(DIGEST);
        refused(other, why);
        registry.publish("note", "1.0.1", cid, DIGEST);
        refused(other, why);
        registry.claimAndPublish("note", "1.0.1", cid, DIGEST, SECRET);
        refused(other, why);
        registry.yank("note", "1.0.0", 0, "");
        refused(other, why);
        registry.unyank("note", "1.0.0", 0);
        refused(other, why);
        registry.deprecate("note", "1.0.0", 0, "");
        refused(other, why);
        registry.undeprecate("note", "1.0.0", 0);
    }

    // ------------------------------------------------------------------------------------------ batches

    function test_ABatchPublishesInOrder() public {
        claim(ALICE, "note");
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](3);
        batch[0] = publication("note", "1.0.0");
        batch[1] = publication("memo", SEMVER_31);
        batch[2] = publication("note", "0.9.0");
        for (uint256 i; i < batch.length; ++i) {
            expectEvent();
            emit ICapabilityRegistry.Published(
                keccak256(bytes(batch[i].name)),
                ALICE,
                uint64(2 + i),
                string.concat("did:nuwa:cap:", batch[i].name, "@", batch[i].semver),
                batch[i].semver,
                batch[i].cid,
                DIGEST
            );
        }
        vm.prank(ALICE);
        registry.publishBatch(batch);
        assertEq(registry.ownerOf("memo"), ALICE, "a name claimed on the way");
        assertEq(registry.indexOf("note", "0.9.0"), 1, "index");
    }

    function test_AnEmptyBatchChangesNothing() public {
        registry.publishBatch(new ICapabilityRegistry.Publication[](0));
        (, uint64 count) = registry.log();
        assertEq(count, 0, "events");
    }

    function testFuzz_ABatchIsPublishedWholeOrNotAtAll(uint256 length, uint256 bad) public {
        length = 1 + length % 6;
        bad %= length;
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](length);
        for (uint256 i; i < length; ++i) {
            batch[i] = publication("note", string.concat("1.0.", vm.toString(i)));
        }
        batch[bad].semver = "1.0";
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.InvalidSemVer.selector, "1.0"));
        registry.publishBatch(batch);
        assertEq(registry.releaseCount("note"), 0, "releases");
        assertEq(registry.ownerOf("note"), NOBODY, "owner");
        batch[bad].semver = string.concat("1.0.", vm.toString(bad));
        registry.publishBatch(batch);
        assertEq(registry.releaseCount("note"), length, "releases when all are right");
    }

    function test_RevertIf_ABatchHasAVersionTwice() public {
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](2);
        batch[0] = batch[1] = publication("note", "1.0.0");
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.VersionAlreadyPublished.selector, "note", "1.0.0")
        );
        registry.publishBatch(batch);
    }

    // ------------------------------------------------------------------------------------------ views

    function test_UnknownNamesAndVersionsAreAbsent() public {
        publish(ALICE, "note", "1.0.0", DIGEST);
        assertEq(registry.releaseCount("none"), 0, "count");
        assertEq(registry.releases("none", 0, 10).length, 0, "list");
        assertEq(registry.nameOfSkeleton("none"), "", "skeleton");
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NoSuchRelease.selector, "note", "1.0.1"));
        registry.release("note", "1.0.1");
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NoSuchRelease.selector, "none", ""));
        registry.indexOf("none", "");
    }

    function test_PagesOfReleasesEndWithTheList() public {
        for (uint256 i; i < 5; ++i) {
            publish(ALICE, "note", string.concat("1.0.", vm.toString(i)), DIGEST);
        }
        _pageIs(0, 5, 0, 5);
        _pageIs(1, 2, 1, 2);
        _pageIs(3, type(uint256).max, 3, 2);
        _pageIs(5, 1, 5, 0);
        _pageIs(type(uint256).max, type(uint256).max, 5, 0);
        _pageIs(2, 0, 2, 0);
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _revertsAsNoSuchRelease(string memory name, string memory semver, uint256 index) private {
        bytes memory expected =
            abi.encodeWithSelector(ICapabilityRegistry.NoSuchRelease.selector, name, semver);
        vm.expectRevert(expected);
        registry.yank(name, semver, index, "");
        vm.expectRevert(expected);
        registry.unyank(name, semver, index);
        vm.expectRevert(expected);
        registry.deprecate(name, semver, index, "");
        vm.expectRevert(expected);
        registry.undeprecate(name, semver, index);
    }

    function _pageIs(uint256 from, uint256 count, uint256 first, uint256 length) private view {
        ICapabilityRegistry.Release[] memory page = registry.releases("note", from, count);
        assertEq(page.length, length, "length of the page");
        for (uint256 i; i < length; ++i) {
            assertEq(page[i].semver, string.concat("1.0.", vm.toString(first + i)), "release in the page");
        }
    }
}
