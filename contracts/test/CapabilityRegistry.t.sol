// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test, Vm} from "./Test.sol";

contract CapabilityRegistryTest is Test {
    address private constant ALICE = address(0xA11CE);
    address private constant BOB = address(0xB0B);

    bytes32 private constant DIGEST = bytes32(uint256(0xd16e57));

    // 30 characters are the last that fit into a release word.
    string private constant SEMVER_30 = "1.0.0-abcdefghijklmnopqrstuvwx";
    string private constant SEMVER_31 = "1.0.0-abcdefghijklmnopqrstuvwxy";

    ICapabilityRegistry private registry = newRegistry(0, 0);

    // ------------------------------------------------------------------------------------------ publish

    function test_PublishGivesTheNameToThePublisher() public {
        assertEq(registry.ownerOf("note"), address(0), "owner before");
        _publish(ALICE, "note", "1.0.0", DIGEST);
        assertEq(registry.ownerOf("note"), ALICE, "owner");
        assertEq(registry.nameOfSkeleton("note"), "note", "name of the skeleton");
    }

    function test_PublishEmitsPublished() public {
        vm.expectEmit(address(registry));
        emit ICapabilityRegistry.Published(
            keccak256("note"),
            ALICE,
            1,
            "did:nuwa:cap:note@1.0.0-rc.1",
            "1.0.0-rc.1",
            Reference.rawCid(DIGEST),
            DIGEST
        );
        _publish(ALICE, "note", "1.0.0-rc.1", DIGEST);
    }

    function test_PublishedReleaseReadsBack() public {
        _publish(ALICE, "note", "1.2.3", DIGEST);
        ICapabilityRegistry.Release memory release = registry.release("note", "1.2.3");
        assertEq(release.capUri, "did:nuwa:cap:note@1.2.3", "capUri");
        assertEq(release.semver, "1.2.3", "semver");
        assertEq(release.cid, Reference.rawCid(DIGEST), "cid");
        assertEq(release.sha256, DIGEST, "sha256");
        assertTrue(!release.yanked && !release.deprecated, "no flags");
    }

    function test_ReleasesMayComeInAnyOrderOfVersions() public {
        _publish(ALICE, "note", "2.0.0", DIGEST);
        _publish(ALICE, "note", "1.2.1", DIGEST);
        assertEq(registry.indexOf("note", "2.0.0"), 0, "first");
        assertEq(registry.indexOf("note", "1.2.1"), 1, "second");
    }

    function test_OneDigestMayBePublishedUnderSeveralVersionsAndNames() public {
        _publish(ALICE, "note", "1.0.0", DIGEST);
        _publish(ALICE, "note", "1.0.1", DIGEST);
        _publish(BOB, "memo", "1.0.0", DIGEST);
        assertEq(registry.release("memo", "1.0.0").sha256, DIGEST, "digest");
    }

    function test_LongVersionsReadBackLikeShortOnes() public {
        _publish(ALICE, "note", SEMVER_31, DIGEST);
        _publish(ALICE, "note", SEMVER_30, ~DIGEST);
        assertEq(registry.release("note", SEMVER_31).semver, SEMVER_31, "31 characters");
        assertEq(registry.release("note", SEMVER_30).semver, SEMVER_30, "30 characters");
        assertEq(registry.indexOf("note", SEMVER_31), 0, "index of the long one");
        assertEq(registry.indexOf("note", SEMVER_30), 1, "index of the short one");
    }

    function test_RevertIf_NameBelongsToAnother() public {
        _publish(ALICE, "note", "1.0.0", DIGEST);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NotMaintainer.selector, "note", BOB));
        _publish(BOB, "note", "2.0.0", DIGEST);
    }

    function test_RevertIf_NameLooksLikeAnother() public {
        string memory json = vectors("names.json");
        for (uint256 i; hasCase(json, "lookalikes", i); ++i) {
            registry = newRegistry(0, 0);
            string memory takenBy = field(json, "lookalikes", i, "taken_by");
            string memory name = field(json, "lookalikes", i, "name");
            _publish(ALICE, takenBy, "1.0.0", DIGEST);
            vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NameTaken.selector, name, takenBy));
            _publish(ALICE, name, "1.0.0", DIGEST); // not even to the same owner
            assertEq(registry.ownerOf(name), address(0), "owner of the lookalike");
        }
    }

    function test_RevertIf_NameIsInvalid() public {
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.InvalidName.selector, "Note"));
        _publish(ALICE, "Note", "1.0.0", DIGEST);
    }

    function test_RevertIf_VersionIsInvalid() public {
        string memory json = vectors("versions.json");
        for (uint256 i; hasCase(json, "invalid", i); ++i) {
            string memory semver = field(json, "invalid", i, "semver");
            vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.InvalidSemVer.selector, semver));
            _publish(ALICE, "note", semver, DIGEST);
        }
    }

    function test_RevertIf_DigestIsZero() public {
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.ZeroDigest.selector));
        _publish(ALICE, "note", "1.0.0", 0);
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
        _publish(ALICE, "note", "1.0.0", DIGEST);
        vm.prank(ALICE);
        registry.yank("note", "1.0.0", 0, "");
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.VersionAlreadyPublished.selector, "note", "1.0.0")
        );
        _publish(ALICE, "note", "1.0.0", ~DIGEST); // a yank does not set it free
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
        _publish(ALICE, "note", "1.0.0", DIGEST);
        _publish(ALICE, "note", "1.0.1", DIGEST);
        vm.expectEmit(address(registry));
        emit ICapabilityRegistry.Yanked(keccak256("note"), ALICE, 3, "note", "1.0.1", "leaks");
        vm.prank(ALICE);
        registry.yank("note", "1.0.1", 1, "leaks");
        assertTrue(registry.release("note", "1.0.1").yanked, "yanked");
        assertTrue(!registry.release("note", "1.0.1").deprecated, "not deprecated");
        assertTrue(!registry.release("note", "1.0.0").yanked, "the other is not yanked");
    }

    function test_UnyankTakesItBackAndEmitsUnyanked() public {
        _publish(ALICE, "note", SEMVER_31, DIGEST);
        bytes32 before = keccak256(abi.encode(registry.release("note", SEMVER_31)));
        vm.prank(ALICE);
        registry.yank("note", SEMVER_31, 0, "");
        vm.expectEmit(address(registry));
        emit ICapabilityRegistry.Unyanked(keccak256("note"), ALICE, 3, "note", SEMVER_31);
        vm.prank(ALICE);
        registry.unyank("note", SEMVER_31, 0);
        assertEq(keccak256(abi.encode(registry.release("note", SEMVER_31))), before, "release as it was");
    }

    function test_RevertIf_YankedTwiceOrUnyankedTwice() public {
        _publish(address(this), "note", "1.0.0", DIGEST);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.NotYanked.selector, "note", "1.0.0"));
        registry.unyank("note", "1.0.0", 0);
        registry.yank("note", "1.0.0", 0, "");
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.AlreadyYanked.selector, "note", "1.0.0"));
        registry.yank("note", "1.0.0", 0, "");
    }

    function test_RevertIf_AnotherYanksOrUnyanks() public {
        _publish(ALICE, "note", "1.0.0", DIGEST);
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
        _publish(address(this), "note", "1.0.0", DIGEST);
        _publish(address(this), "note", SEMVER_31, DIGEST);
        _publish(address(this), "memo", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "1.0.0", 1);
        _revertsAsNoSuchRelease("note", SEMVER_31, 0);
        _revertsAsNoSuchRelease("note", "1.0.0-abcdefghijklmnopqrstuvwxz", 1);
        _revertsAsNoSuchRelease("note", "1.0.0", 2);
        _revertsAsNoSuchRelease("note", "1.0.0", type(uint256).max);
        _revertsAsNoSuchRelease("memo", SEMVER_31, 0);
        _revertsAsNoSuchRelease("none", "1.0.0", 0);
    }

    function test_RevertIf_EmptyVersionMeetsAnEmptyWord() public {
        _publish(address(this), "note", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "", 1);
        _revertsAsNoSuchRelease("none", "", 0);
        _revertsAsNoSuchRelease("", "", 0);
    }

    function test_RevertIf_VersionHasWrongBytesWhereTheWordHasNone() public {
        _publish(address(this), "note", "1.0.0", DIGEST);
        _revertsAsNoSuchRelease("note", "1.0.0\x00", 0);
        _revertsAsNoSuchRelease("note", "1.0.", 0);
        // A length of 5 modulo 256 must not pass for a length of 5.
        _revertsAsNoSuchRelease("note", string(abi.encodePacked("1.0.0", new bytes(256))), 0);
    }

    function test_ReasonsHaveAtMost500Bytes() public {
        _publish(address(this), "note", "1.0.0", DIGEST);
        vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.ReasonTooLong.selector, 501));
        registry.yank("note", "1.0.0", 0, string(new bytes(501)));
        registry.yank("note", "1.0.0", 0, string(new bytes(500)));
    }

    // ------------------------------------------------------------------------------------------ views

    function test_UnknownNamesAndVersionsAreAbsent() public {
        _publish(ALICE, "note", "1.0.0", DIGEST);
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
            _publish(ALICE, "note", string.concat("1.0.", vm.toString(i)), DIGEST);
        }
        _pageIs(0, 5, 0, 5);
        _pageIs(1, 2, 1, 2);
        _pageIs(3, type(uint256).max, 3, 2);
        _pageIs(5, 1, 5, 0);
        _pageIs(type(uint256).max, type(uint256).max, 5, 0);
        _pageIs(2, 0, 2, 0);
    }

    function test_TheSkeletonViewTakesSkeletonsNotNames() public {
        _publish(ALICE, "notes-1sts", "1.0.0", DIGEST);
        assertEq(registry.nameOfSkeleton("noteslsts"), "notes-1sts", "by skeleton");
        assertEq(registry.nameOfSkeleton("notes-1sts"), "", "by name");
    }

    function test_RevertIf_SentEther() public {
        assertTrue(address(this).balance > 0, "there is ether to send");
        (bool sent,) = address(registry).call{value: 1}("");
        assertTrue(!sent, "no ether without a call");
        bytes memory call =
            abi.encodeCall(registry.publish, ("note", "1.0.0", Reference.rawCid(DIGEST), DIGEST));
        (sent,) = address(registry).call{value: 1}(call);
        assertTrue(!sent, "no ether with a call");
    }

    // ------------------------------------------------------------------------------------------ log

    function test_TheLogIsZeroBeforeTheFirstEvent() public view {
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(head), 0, "head");
        assertEq(count, 0, "count");
    }

    function test_TheHeadIsTheFoldOfEverythingEmitted() public {
        vm.recordLogs();
        _publish(address(this), "note", "1.0.0", DIGEST);
        _publish(ALICE, "memo", SEMVER_31, ~DIGEST);
        registry.yank("note", "1.0.0", 0, "leaks");
        registry.unyank("note", "1.0.0", 0);

        bytes32 word;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 4, "one event a change");
        for (uint256 i; i < logs.length; ++i) {
            bytes32[] memory topics = logs[i].topics;
            assertEq(topics.length, 3, "topics");
            bytes32 entry = keccak256(bytes.concat(topics[0], topics[1], topics[2], keccak256(logs[i].data)));
            word = bytes24(keccak256(bytes.concat(word, entry))) | bytes32(i + 1);
            assertEq(abi.decode(logs[i].data, (uint64)), i + 1, "sequence");
        }
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(bytes.concat(head, bytes8(count))), word, "head and count");
    }

    function test_ARevertLeavesTheLogAlone() public {
        _publish(ALICE, "note", "1.0.0", DIGEST);
        (bytes24 before,) = registry.log();
        vm.expectRevert();
        _publish(BOB, "note", "1.0.1", DIGEST);
        (bytes24 head, uint64 count) = registry.log();
        assertEq(bytes32(head), bytes32(before), "head");
        assertEq(count, 1, "count");
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _publish(address by, string memory name, string memory semver, bytes32 digest) private {
        string memory cid = Reference.rawCid(digest);
        vm.prank(by);
        registry.publish(name, semver, cid, digest);
    }

    function _revertsAsNoSuchRelease(string memory name, string memory semver, uint256 index) private {
        bytes memory expected =
            abi.encodeWithSelector(ICapabilityRegistry.NoSuchRelease.selector, name, semver);
        vm.expectRevert(expected);
        registry.yank(name, semver, index, "");
        vm.expectRevert(expected);
        registry.unyank(name, semver, index);
    }

    function _pageIs(uint256 from, uint256 count, uint256 first, uint256 length) private view {
        ICapabilityRegistry.Release[] memory page = registry.releases("note", from, count);
        assertEq(page.length, length, "length of the page");
        for (uint256 i; i < length; ++i) {
            assertEq(page[i].semver, string.concat("1.0.", vm.toString(first + i)), "release in the page");
        }
    }
}
