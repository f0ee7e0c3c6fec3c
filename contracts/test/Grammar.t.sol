// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test} from "./Test.sol";

/// @notice See `Grammar.sol`.
interface Grammar {
    function skeletonOf(string calldata name) external pure returns (string memory);
    function isSemVer(string calldata text) external pure returns (bool);
    function rawCid(bytes32 sha256) external pure returns (string memory);
    function spells(string calldata cid, bytes32 sha256) external pure returns (bool);
    function hash(string calldata text) external pure returns (bytes32);
}

contract GrammarTest is Test {
    Grammar private grammar = Grammar(vm.deployCode("Grammar.sol:Grammar", ""));

    // ------------------------------------------------------------------------------------------ shared vectors

    function test_ValidNamesHaveTheirSkeletons() public view {
        string memory json = vectors("names.json");
        uint256 i;
        for (; hasCase(json, "valid", i); ++i) {
            string memory name = field(json, "valid", i, "name");
            assertEq(grammar.skeletonOf(name), field(json, "valid", i, "skeleton"), name);
        }
        assertTrue(i > 10, "there are vectors");
    }

    function test_RevertIf_NameIsInvalid() public {
        string memory json = vectors("names.json");
        uint256 i;
        for (; hasCase(json, "invalid", i); ++i) {
            string memory name = field(json, "invalid", i, "name");
            vm.expectRevert(abi.encodeWithSelector(ICapabilityRegistry.InvalidName.selector, name));
            grammar.skeletonOf(name);
        }
        assertTrue(i > 10, "there are vectors");
    }

    function test_LookalikesShareASkeleton() public view {
        string memory json = vectors("names.json");
        uint256 i;
        for (; hasCase(json, "lookalikes", i); ++i) {
            string memory name = field(json, "lookalikes", i, "name");
            string memory takenBy = field(json, "lookalikes", i, "taken_by");
            assertEq(grammar.skeletonOf(name), grammar.skeletonOf(takenBy), name);
        }
        assertTrue(i > 3, "there are vectors");
    }

    function test_DistinctNamesHaveDistinctSkeletons() public view {
        string memory json = vectors("names.json");
        uint256 i;
        for (; hasCase(json, "distinct", i); ++i) {
            bytes32 left = keccak256(bytes(grammar.skeletonOf(field(json, "distinct", i, "name"))));
            bytes32 right = keccak256(bytes(grammar.skeletonOf(field(json, "distinct", i, "other"))));
            assertTrue(left != right, field(json, "distinct", i, "name"));
        }
        assertTrue(i > 3, "there are vectors");
    }

    function test_VersionsAreValidOrNot() public view {
        string memory json = vectors("versions.json");
        uint256 valid;
        for (; hasCase(json, "valid", valid); ++valid) {
            string memory semver = field(json, "valid", valid, "semver");
            assertTrue(grammar.isSemVer(semver), semver);
        }
        uint256 invalid;
        for (; hasCase(json, "invalid", invalid); ++invalid) {
            string memory semver = field(json, "invalid", invalid, "semver");
            assertTrue(!grammar.isSemVer(semver), semver);
        }
        assertTrue(valid > 10 && invalid > 10, "there are vectors");
    }

    function test_CidsSpellTheirDigests() public view {
        string memory json = vectors("cids.json");
        uint256 i;
        for (; hasCase(json, "valid", i); ++i) {
            assertEq(
                grammar.rawCid(wordField(json, "valid", i, "sha256")), field(json, "valid", i, "cid"), "cid"
            );
        }
        assertTrue(i > 10, "there are vectors");
        for (i = 0; hasCase(json, "invalid", i); ++i) {
            string memory cid = field(json, "invalid", i, "cid");
            assertTrue(!grammar.spells(cid, wordField(json, "invalid", i, "sha256")), cid);
        }
    }

    function test_NamesAndVersionsAreKnownByTheirHashes() public view {
        string memory json = vectors("ids.json");
        uint256 i;
        for (; hasCase(json, "names", i); ++i) {
            string memory name = field(json, "names", i, "name");
            assertEq(grammar.hash(name), wordField(json, "names", i, "id"), name);
        }
        for (i = 0; hasCase(json, "semvers", i); ++i) {
            string memory semver = field(json, "semvers", i, "semver");
            assertEq(grammar.hash(semver), wordField(json, "semvers", i, "id"), semver);
        }
        assertTrue(i > 3, "there are vectors");
    }

    // ------------------------------------------------------------------------------------------ against the reference

    function testFuzz_TextsAreHashedAsSolidityDoes(string memory text) public view {
        assertEq(grammar.hash(text), keccak256(bytes(text)), text);
    }

    function testFuzz_AnyTextSpellsADigestOnlyIfItIsItsCid(string memory cid, bytes32 digest) public view {
        assertTrue(!grammar.spells(cid, digest), "no CID at all"); // 52 characters are not hit upon by chance
        assertTrue(grammar.spells(Reference.rawCid(digest), digest), "the CID");
        assertTrue(!grammar.spells(string.concat(Reference.rawCid(digest), cid, "a"), digest), "a longer one");
    }

    function testFuzz_EveryDigestIsSpeltAsBase32Says(bytes32 digest) public view {
        assertEq(grammar.rawCid(digest), Reference.rawCid(digest), "cid");
    }

    function testFuzz_NamesAreJudgedAsTheReferenceDoes(bytes memory seed) public view {
        _compareName(_spell(seed, "aio01z9--", 66));
    }

    function testFuzz_ArbitraryBytesAreJudgedAsNamesAsTheReferenceDoes(bytes memory name) public view {
        _compareName(name);
    }

    function testFuzz_VersionsAreJudgedAsTheReferenceDoes(bytes memory seed) public view {
        bytes memory text = _spell(seed, "0019.-aZ+.", 66);
        assertTrue(grammar.isSemVer(string(text)) == Reference.isSemVer(text), string(text));
    }

    function testFuzz_PreReleasesAreJudgedAsTheReferenceDoes(bytes memory seed) public view {
        bytes memory text = abi.encodePacked("1.0.0-", _spell(seed, "0019.-aZ", 59));
        assertTrue(grammar.isSemVer(string(text)) == Reference.isSemVer(text), string(text));
    }

    function testFuzz_CoresAreJudgedAsTheReferenceDoes(uint64 major, uint64 minor, uint64 patch) public view {
        string memory core =
            string.concat(vm.toString(major), ".", vm.toString(minor), ".", vm.toString(patch));
        assertTrue(grammar.isSemVer(core) == Reference.isSemVer(bytes(core)), core);
    }

    function _compareName(bytes memory name) private view {
        try grammar.skeletonOf(string(name)) returns (string memory skeleton) {
            assertTrue(Reference.isName(name), string(name));
            assertEq(skeleton, Reference.skeleton(name), string(name));
        } catch {
            assertTrue(!Reference.isName(name), string(name));
        }
    }

    /// @dev Turns arbitrary bytes into characters that are likely to be almost right.
    function _spell(bytes memory seed, bytes memory alphabet, uint256 atMost)
        private
        pure
        returns (bytes memory text)
    {
        text = new bytes(seed.length < atMost ? seed.length : atMost);
        for (uint256 i; i < text.length; ++i) {
            text[i] = alphabet[uint8(seed[i]) % alphabet.length];
        }
    }
}
