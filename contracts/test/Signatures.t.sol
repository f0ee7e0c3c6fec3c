// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";
import {TypedData} from "./TypedData.sol";
import {EndlessWallet, HostileWallet, ParrotWallet, Wallet} from "./Wallets.sol";

/// @notice Bob pays for what Alice has signed. Her key is here; a contract's signature is what the contract says.
contract SignaturesTest is RegistryTest {
    uint256 private constant KEY = uint256(keccak256("Alice's key"));
    uint256 private constant ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
    uint256 private constant NOW = 1_800_000_000;
    uint256 private constant DEADLINE = NOW + 1 hours;

    address private author;

    function setUp() public {
        vm.warp(NOW);
        author = vm.addr(KEY);
    }

    // ------------------------------------------------------------------------------------------ what it does

    function test_ASignedPublicationIsThePublishers() public {
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        expectEvent();
        emit ICapabilityRegistry.Sponsored(keccak256("note"), author, 1, "note", BOB, 0);
        expectEvent();
        emit ICapabilityRegistry.Published(
            keccak256("note"), author, 2, "did:nuwa:cap:note@1.0.0", "1.0.0", Reference.rawCid(DIGEST), DIGEST
        );
        _send(_one(), author, DEADLINE, signature);
        assertEq(registry.ownerOf("note"), author, "owner");
        assertEq(registry.nonces(author), 1, "nonce of the author");
        assertEq(registry.nonces(BOB), 0, "nonce of the sponsor");
    }

    function test_AMaintainerMaySignToo() public {
        claim(ALICE, "note");
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        refused(BOB, notMaintainer("note", author));
        registry.publishWithSignature(_one(), author, DEADLINE, signature);
        addMaintainer(ALICE, "note", author);
        _send(_one(), author, DEADLINE, signature);
    }

    function test_ASponsorIsNoPublisher() public {
        claim(BOB, "note");
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        refused(BOB, notMaintainer("note", author)); // the name is Bob's, and the release would be Alice's
        registry.publishWithSignature(_one(), author, DEADLINE, signature);
    }

    function test_ASignedClaimTakesTheAuthorsCommitment() public {
        registry = newRegistry(60, 1 days);
        bytes32 commitment = registry.commitmentOf("note", author, SECRET);
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.CommitmentMissing.selector, commitment));
        registry.publishWithSignature(_one(), author, DEADLINE, signature);
        registry.commit(commitment);
        vm.warp(NOW + 60);
        _send(_one(), author, DEADLINE, signature);
        assertEq(registry.ownerOf("note"), author, "owner");
    }

    function test_ARefusedPublicationUsesUpNoNonce() public {
        ICapabilityRegistry.Publication memory bad = publication("note", "1.0");
        bytes memory signature = _signed(bad, author, 0, DEADLINE);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.InvalidSemVer.selector, "1.0"));
        registry.publishWithSignature(bad, author, DEADLINE, signature);
        assertEq(registry.nonces(author), 0, "nonce");
    }

    // ------------------------------------------------------------------------------------------ what it refuses

    function test_RevertIf_ASignatureIsUsedTwice() public {
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        _send(_one(), author, DEADLINE, signature);
        _isInvalid(_one(), author, 1, DEADLINE, signature);
    }

    function test_RevertIf_TheNonceIsNotTheNext() public {
        _isInvalid(_one(), author, 0, DEADLINE, _signed(_one(), author, 1, DEADLINE));
    }

    function test_ASignatureCountsToTheLastSecond() public {
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        vm.warp(DEADLINE + 1);
        refused(BOB, abi.encodeWithSelector(ICapabilityRegistry.SignatureExpired.selector, DEADLINE));
        registry.publishWithSignature(_one(), author, DEADLINE, signature);
        vm.warp(DEADLINE);
        _send(_one(), author, DEADLINE, signature);
    }

    function test_RevertIf_SignedForAnotherChainOrRegistry() public {
        bytes32 hash = TypedData.hash(_one(), author, 0, DEADLINE);
        bytes32 here = TypedData.domain("capdex", "1", vm.getChainId(), address(registry));
        _send(_one(), author, DEADLINE, signDigest(KEY, TypedData.digest(here, hash))); // the right one, so as to know
        hash = TypedData.hash(publication("note", "1.0.1"), author, 1, DEADLINE);
        bytes32[4] memory elsewhere = [
            TypedData.domain("capdex", "1", vm.getChainId() + 1, address(registry)),
            TypedData.domain("capdex", "1", vm.getChainId(), address(this)),
            TypedData.domain("capdex", "2", vm.getChainId(), address(registry)),
            TypedData.domain("capdeX", "1", vm.getChainId(), address(registry))
        ];
        for (uint256 i; i < elsewhere.length; ++i) {
            bytes memory signature = signDigest(KEY, TypedData.digest(elsewhere[i], hash));
            _isInvalid(publication("note", "1.0.1"), author, 1, DEADLINE, signature);
        }
    }

    function test_ASignatureFollowsTheChainIdThroughAFork() public {
        bytes memory before = _signed(_one(), author, 0, DEADLINE);
        vm.chainId(vm.getChainId() + 1);
        _isInvalid(_one(), author, 0, DEADLINE, before);
        _send(_one(), author, DEADLINE, _signed(_one(), author, 0, DEADLINE));
    }

    function testFuzz_RevertIf_AnyFieldIsNotWhatWasSigned(uint256 which, bytes32 noise) public {
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        ICapabilityRegistry.Publication memory other = _one();
        address publisher = author;
        uint256 deadline = DEADLINE;
        which %= 7;
        if (which == 0) other.name = "memo";
        if (which == 1) other.semver = "1.0.1";
        if (which == 2) other.cid = Reference.rawCid(~DIGEST);
        if (which == 3) other.sha256 ^= noise | bytes32(uint256(1));
        if (which == 4) other.secret ^= noise | bytes32(uint256(1));
        if (which == 5) publisher = address(uint160(uint256(keccak256(abi.encode(noise)))));
        if (which == 6) deadline += 1 + uint256(noise) % 1e6;
        _isInvalid(other, publisher, 0, deadline, signature);
    }

    function test_RevertIf_TheTwinOfASignatureIsUsed() public {
        bytes32 digest = digestOf(_one(), author, 0, DEADLINE);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(KEY, digest);
        bytes memory twin = abi.encodePacked(r, bytes32(ORDER - uint256(s)), v == 27 ? uint8(28) : uint8(27));
        _isInvalid(_one(), author, 0, DEADLINE, twin);
        _isInvalid(_one(), author, 0, DEADLINE, abi.encodePacked(r, s, v - 27)); // v is 27 or 28
        bytes32 compact = bytes32((uint256(v - 27) << 255) | uint256(s));
        _isInvalid(_one(), author, 0, DEADLINE, abi.encodePacked(r, compact)); // nor the form of EIP-2098
        _send(_one(), author, DEADLINE, abi.encodePacked(r, s, v));
    }

    function testFuzz_RevertIf_TheSignatureIsNoise(bytes memory noise, address publisher) public {
        vm.assume(publisher.code.length == 0);
        _isInvalid(_one(), publisher, 0, DEADLINE, noise);
    }

    function test_RevertIf_NobodySigned() public {
        _isInvalid(_one(), NOBODY, 0, DEADLINE, "");
        _isInvalid(_one(), NOBODY, 0, DEADLINE, new bytes(65));
        assertEq(registry.ownerOf("note"), NOBODY, "owner");
    }

    // ------------------------------------------------------------------------------------------ contracts that sign

    function test_AWalletSignsByErc1271() public {
        Wallet wallet = new Wallet();
        _isInvalid(_one(), address(wallet), 0, DEADLINE, "");
        wallet.approve(digestOf(_one(), address(wallet), 0, DEADLINE));
        _send(_one(), address(wallet), DEADLINE, "");
        assertEq(registry.ownerOf("note"), address(wallet), "owner");
        _isInvalid(_one(), address(wallet), 1, DEADLINE, ""); // what it approved is used up
    }

    function test_RevertIf_TheKeyOfAWalletsOwnerSignsForTheWallet() public {
        Wallet wallet = new Wallet();
        _isInvalid(_one(), address(wallet), 0, DEADLINE, _signed(_one(), address(wallet), 0, DEADLINE));
    }

    /// @dev EIP-7702 gives a key code. From then on the code is asked, and the key alone signs nothing.
    function test_RevertIf_AKeyWhoseAccountHasCodeSigns() public {
        bytes memory signature = _signed(_one(), author, 0, DEADLINE);
        vm.etch(author, address(new Wallet()).code);
        _isInvalid(_one(), author, 0, DEADLINE, signature);
        Wallet(author).approve(digestOf(_one(), author, 0, DEADLINE));
        _send(_one(), author, DEADLINE, "");
    }

    function test_AWalletThatUsesUpAllGasUsesUpNoNonce() public {
        address wallet = address(new EndlessWallet());
        bytes memory call = abi.encodeCall(registry.publishWithSignature, (_one(), wallet, DEADLINE, ""));
        (bool done,) = address(registry).call{gas: 1_000_000}(call);
        assertTrue(!done, "refused");
        assertEq(registry.nonces(wallet), 0, "nonce");
    }

    function test_RevertIf_AWalletDoesNotSayExactlyYes() public {
        address parrot = address(new ParrotWallet());
        bytes4 yes = Wallet.isValidSignature.selector;
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(true, abi.encode(~yes)));
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(true, abi.encode(true)));
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(true, yes)); // four bytes are not a word
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(true, yes, bytes28(uint224(1))));
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(true));
        _isInvalid(_one(), parrot, 0, DEADLINE, abi.encodePacked(false, abi.encode(yes)));
        _send(_one(), parrot, DEADLINE, abi.encodePacked(true, abi.encode(yes)));
    }

    function test_AWalletCannotChangeTheRegistryWhileItIsAsked() public {
        HostileWallet wallet = new HostileWallet(registry);
        ICapabilityRegistry.Publication memory other = publication("memo", "1.0.0");
        address me = address(wallet);
        wallet.plan(abi.encodeCall(registry.publishWithSignature, (_one(), me, DEADLINE, "")));
        wallet.plan(abi.encodeCall(registry.publishWithSignature, (other, me, DEADLINE, "")));
        wallet.plan(abi.encodeCall(registry.publish, ("memo", "1.0.0", other.cid, DIGEST)));
        wallet.plan(abi.encodeCall(registry.claim, ("note", SECRET)));
        wallet.plan(abi.encodeCall(registry.commit, (SECRET)));
        _send(_one(), me, DEADLINE, "");
        assertEq(registry.nonces(me), 1, "nonce");
        assertEq(registry.releaseCount("note"), 1, "releases");
        assertEq(registry.ownerOf("memo"), NOBODY, "the other name");
        (, uint64 count) = registry.log();
        assertEq(count, 2, "events");
    }

    // ------------------------------------------------------------------------------------------ EIP-712

    function test_TheDomainIsPublished() public view {
        (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address contract_,
            bytes32 salt,
            uint256[] memory extensions
        ) = IERC5267(address(registry)).eip712Domain();
        assertEq(bytes32(fields), bytes32(bytes1(0x0f)), "fields: name, version, chain id, contract");
        assertEq(name, "capdex", "name");
        assertEq(version, "1", "version");
        assertEq(chainId, vm.getChainId(), "chain id");
        assertEq(contract_, address(registry), "contract");
        assertEq(salt, 0, "salt");
        assertEq(extensions.length, 0, "extensions");
    }

    /// @dev The vectors were signed by Python. Each is used on its own chain, at its own address, with its own nonce.
    function test_SignaturesOfTheVectorsCount() public {
        string memory json = vectors("signatures.json");
        uint256 i;
        for (; hasCase(json, "signatures", i); ++i) {
            address publisher = addressField(json, "signatures", i, "publisher");
            uint256 nonce = numberField(json, "signatures", i, "nonce");
            uint256 deadline = numberField(json, "signatures", i, "deadline");
            ICapabilityRegistry.Publication memory one = ICapabilityRegistry.Publication(
                field(json, "signatures", i, "name"),
                field(json, "signatures", i, "semver"),
                field(json, "signatures", i, "cid"),
                wordField(json, "signatures", i, "sha256"),
                wordField(json, "signatures", i, "secret")
            );
            vm.chainId(numberField(json, "signatures", i, "chain_id"));
            _standAt(addressField(json, "signatures", i, "contract"), publisher, nonce);
            bytes32 digest = wordField(json, "signatures", i, "digest");
            assertEq(digestOf(one, publisher, nonce, deadline), digest, "digest");
            vm.warp(deadline);
            _send(one, publisher, deadline, bytesField(json, "signatures", i, "signature"));
            assertEq(registry.ownerOf(one.name), publisher, "owner");
        }
        assertTrue(i > 3, "there are vectors");
    }

    // ------------------------------------------------------------------------------------------ helpers

    function _one() private pure returns (ICapabilityRegistry.Publication memory) {
        return publication("note", "1.0.0");
    }

    function _send(
        ICapabilityRegistry.Publication memory one,
        address publisher,
        uint256 deadline,
        bytes memory signature
    ) private {
        vm.prank(BOB);
        registry.publishWithSignature(one, publisher, deadline, signature);
    }

    function _isInvalid(
        ICapabilityRegistry.Publication memory one,
        address publisher,
        uint256 nonce,
        uint256 deadline,
        bytes memory signature
    ) private {
        vm.expectRevert(
            abi.encodeWithSelector(ICapabilityRegistry.InvalidSignature.selector, publisher, nonce)
        );
        _send(one, publisher, deadline, signature);
    }

    /// @dev A registry at an address of choice, where `publisher` has used up `nonce` signatures.
    function _standAt(address place, address publisher, uint256 nonce) private {
        vm.etch(place, address(newRegistry(0, 0)).code);
        registry = ICapabilityRegistry(place);
        vm.store(place, keccak256(abi.encode(publisher, 9)), bytes32(nonce));
        assertEq(registry.nonces(publisher), nonce, "nonce");
    }

    function _signed(
        ICapabilityRegistry.Publication memory one,
        address publisher,
        uint256 nonce,
        uint256 deadline
    ) private view returns (bytes memory) {
        return signDigest(KEY, digestOf(one, publisher, nonce, deadline));
    }
}
