// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {ICapabilityVotes} from "../src/interfaces/ICapabilityVotes.sol";
import {Ledger} from "./Ledger.sol";
import {Reference} from "./Reference.sol";
import {TypedData} from "./TypedData.sol";

/// @notice Five people who do anything at all, to names that are alike, reserved or no names; and who look, after each
/// thing that was done, whether the registry has become what its logs say. Their arguments are chosen by forge.
contract People is Ledger {
    uint256 private constant SPELLINGS = 2;
    bytes32 private constant SECRET = keccak256("a secret");

    ICapabilityRegistry private immutable _registry;
    ICapabilityVotes private immutable _votes;

    address[] private _people; // their keys are 1, 2, 3 …
    string[] private _semvers = [
        "1.0.0",
        "1.0.1",
        "2.0.0-rc.1",
        "0.0.1",
        "1.0.0-abcdefghijklmnopqrstuvwx",
        "1.0.0-abcdefghijklmnopqrstuvwxy",
        "1.0.0-abcdefghijklmnopqrstuvwxy-0123456789",
        "1.0"
    ];
    bytes32[] private _made; // commitments
    bytes32[] private _kinds = [
        ICapabilityRegistry.Published.selector,
        ICapabilityRegistry.Yanked.selector,
        ICapabilityRegistry.Unyanked.selector,
        ICapabilityRegistry.Deprecated.selector,
        ICapabilityRegistry.Undeprecated.selector,
        ICapabilityRegistry.Sponsored.selector,
        ICapabilityRegistry.Committed.selector,
        ICapabilityRegistry.Claimed.selector,
        ICapabilityRegistry.MaintainerAdded.selector,
        ICapabilityRegistry.MaintainerRemoved.selector,
        ICapabilityRegistry.TransferOffered.selector,
        ICapabilityRegistry.TransferCancelled.selector,
        ICapabilityRegistry.Transferred.selector,
        ICapabilityRegistry.Renounced.selector,
        ICapabilityRegistry.NameDeprecated.selector,
        ICapabilityRegistry.NameUndeprecated.selector,
        ICapabilityVotes.Voted.selector
    ];

    constructor(ICapabilityRegistry registry, ICapabilityVotes votes) {
        (_registry, _votes) = (registry, votes);
        for (uint256 key = 1; key <= 5; ++key) {
            _people.push(vm.addr(key));
        }
    }

    // ------------------------------------------------------------------------------------------ claiming

    function passTime(uint32 seconds_) external {
        vm.warp(vm.getBlockTimestamp() + seconds_ % 200_000);
    }

    function commit(uint8 who, uint8 whose, uint8 name) external {
        bytes32 commitment = _registry.commitmentOf(text(name), person(whose), SECRET);
        _as(who);
        try _registry.commit(commitment) {
            _made.push(commitment);
            _did(1, name);
        } catch {}
    }

    function claim(uint8 who, uint8 name) external {
        _as(who);
        try _registry.claim(text(name), SECRET) {
            _did(1, name);
        } catch {}
    }

    /// @dev By the book, so that names are claimed at all: this may not be refused.
    function claimWell(uint8 who, uint8 name) public {
        string memory chosen = text(name);
        if (!Reference.isName(bytes(chosen)) || _registry.isReserved(chosen)) return;
        if (nameOfSkeleton[keccak256(bytes(Reference.skeleton(bytes(chosen))))] != 0) return;
        bytes32 commitment = _registry.commitmentOf(chosen, person(who), SECRET);
        uint256 madeAt = commitments[commitment];
        if (madeAt == 0 || vm.getBlockTimestamp() + 60 > madeAt + 1 days) {
            vm.warp(vm.getBlockTimestamp() + 60); // now the old one has expired
            _as(who);
            _registry.commit(commitment);
            _made.push(commitment);
            _did(1, name);
        }
        vm.warp(vm.getBlockTimestamp() + 60);
        _as(who);
        _registry.claim(chosen, SECRET);
        _did(1, name);
    }

    // ------------------------------------------------------------------------------------------ publishing

    function publish(uint8 who, uint8 name, uint8 semver, bytes32 digest) external {
        ICapabilityRegistry.Publication memory one = _publication(name, semver, digest);
        _as(who);
        try _registry.claimAndPublish(one.name, one.semver, one.cid, one.sha256, one.secret) {
            _did(1, name);
        } catch {}
    }

    /// @dev Under a name that is theirs, or that they make theirs: refused only for the version.
    function publishWell(uint8 who, uint8 name, uint8 semver, bytes32 digest) external {
        claimWell(who, name);
        ICapabilityRegistry.Publication memory one = _publication(name, semver, digest | bytes32(uint256(1)));
        Name storage known = names[keccak256(bytes(one.name))];
        if (!known.claimed || !maintained(known, person(who))) return;
        if (known.places[keccak256(bytes(one.semver))] != 0) return;
        if (!Reference.isSemVer(bytes(one.semver))) return;
        _as(who);
        _registry.publish(one.name, one.semver, one.cid, one.sha256);
        _did(1, name);
    }

    function publishBatch(uint8 who, uint8 name, uint8[4] calldata semvers, bytes32 digest) external {
        uint256 length = uint256(digest) % 5;
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](length);
        for (uint256 i; i < length; ++i) {
            batch[i] = _publication(name, semvers[i], digest);
        }
        _as(who);
        try _registry.publishBatch(batch) {
            _did(length, name);
        } catch {}
    }

    /// @dev One in eight is signed wrongly and must be refused.
    function publishWithSignature(
        uint8 who,
        uint8 signer,
        uint8 name,
        uint8 semver,
        bytes32 digest,
        bool wrong
    ) external {
        ICapabilityRegistry.Publication memory one = _publication(name, semver, digest);
        uint256 deadline = vm.getBlockTimestamp();
        wrong = wrong && uint256(digest) % 4 == 0;
        bytes memory signature = _sign(one, signer, wrong ? deadline + 1 : deadline);
        address publisher = person(signer);
        _as(who);
        try _registry.publishWithSignature(one, publisher, deadline, signature) {
            assertTrue(!wrong, "a wrong signature is refused");
            _did(2, name); // the nonce, and the release
        } catch {}
    }

    function _sign(ICapabilityRegistry.Publication memory one, uint8 signer, uint256 deadline)
        private
        view
        returns (bytes memory)
    {
        address publisher = person(signer);
        bytes32 domain = TypedData.domain("capdex", "1", vm.getChainId(), address(_registry));
        bytes32 hash = TypedData.hash(one, publisher, _registry.nonces(publisher), deadline);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(1 + signer % _people.length, TypedData.digest(domain, hash));
        return abi.encodePacked(r, s, v);
    }

    // ------------------------------------------------------------------------------------------ life cycle

    /// @dev Mostly of an owner who gets it right. Else anybody, at the wrong place, or in the wrong direction.
    function setFlag(uint8 who, uint8 name, uint8 index, bool yanks, uint8 slip) external {
        string memory chosen = text(name);
        Name storage known = names[keccak256(bytes(chosen))];
        if (known.releases.length == 0) return;
        uint256 at = index % known.releases.length;
        Entry storage entry = known.releases[at];
        string memory semver = entry.semver;
        bool isSet = yanks ? entry.yanked : entry.deprecated;
        if (slip % 8 == 0) isSet = !isSet;
        if (slip % 8 == 1) ++at;
        _as(slip % 8 > 2 && known.owner != address(0) ? known.owner : person(who));
        if (yanks && !isSet) {
            try _registry.yank(chosen, semver, at, "because") {
                _did(1, name);
            } catch {}
        } else if (yanks) {
            try _registry.unyank(chosen, semver, at) {
                _did(1, name);
            } catch {}
        } else if (!isSet) {
            try _registry.deprecate(chosen, semver, at, "") {
                _did(1, name);
            } catch {}
        } else {
            try _registry.undeprecate(chosen, semver, at) {
                _did(1, name);
            } catch {}
        }
    }

    function deprecateName(uint8 who, uint8 name, uint8 other) external {
        _as(who);
        try _registry.deprecateName(text(name), "", text(other)) {
            _did(1, name);
        } catch {}
    }

    function undeprecateName(uint8 who, uint8 name) external {
        _as(who);
        try _registry.undeprecateName(text(name)) {
            _did(1, name);
        } catch {}
    }

    // ------------------------------------------------------------------------------------------ ownership

    function addMaintainer(uint8 who, uint8 name, uint8 account) external {
        _as(who);
        try _registry.addMaintainer(text(name), person(account)) {
            _did(1, name);
        } catch {}
    }

    function removeMaintainer(uint8 who, uint8 name, uint8 account) external {
        _as(who);
        try _registry.removeMaintainer(text(name), person(account)) {
            _did(1, name);
        } catch {}
    }

    function offerTransfer(uint8 who, uint8 name, uint8 recipient) external {
        _as(who);
        try _registry.offerTransfer(text(name), person(recipient)) {
            _did(1, name);
        } catch {}
    }

    function cancelTransfer(uint8 who, uint8 name) external {
        _as(who);
        try _registry.cancelTransfer(text(name)) {
            _did(1, name);
        } catch {}
    }

    function acceptTransfer(uint8 who, uint8 name) external {
        _as(who);
        try _registry.acceptTransfer(text(name)) {
            _did(1, name);
        } catch {}
    }

    /// @dev Seldom, or soon no name would have an owner.
    function renounce(uint8 who, uint8 name, uint8 whim) external {
        if (whim % 16 != 0) return;
        _as(who);
        try _registry.renounce(text(name)) {
            _did(1, name);
        } catch {}
    }

    // ------------------------------------------------------------------------------------------ beside

    function vote(uint8 who, uint8 name, int8 value) external {
        _as(who);
        try _votes.vote(text(name), value % 3) {
            _did(1, name);
        } catch {}
    }

    function sendEther(uint8 who, uint8 name) external payable {
        _as(who);
        bytes memory call = abi.encodeCall(_registry.claim, (text(name), SECRET));
        (bool sent,) = address(_registry).call{value: 1}(call);
        assertTrue(!sent, "ether is refused");
    }

    // ------------------------------------------------------------------------------------------ what must hold

    /// @notice Returns how many changes of each kind there were.
    function happened() external view returns (uint256[] memory times) {
        times = new uint256[](_kinds.length);
        for (uint256 i; i < times.length; ++i) {
            times[i] = changes[_kinds[i]];
        }
    }

    /// @notice After every call: the heads are those of the logs, the nonces too, and no ether is held.
    function checkLog() external view {
        _isLog(address(_registry));
        _isLog(address(_votes));
        for (uint256 i; i < _people.length; ++i) {
            assertEq(_registry.nonces(_people[i]), nonces[_people[i]], "nonce");
        }
        assertEq(address(_registry).balance + address(_votes).balance, 0, "ether");
    }

    /// @notice After a run: every name and every commitment is what the logs say.
    function checkAll() external view {
        for (uint256 name; name < 256; ++name) {
            if (bytes(text(uint8(name))).length == 0) break;
            _isAsLogged(text(uint8(name)));
        }
        for (uint256 i; i < _made.length; ++i) {
            assertEq(_registry.committedAt(_made[i]), commitments[_made[i]], "time of a commitment");
        }
    }

    function _isLog(address emitter) private view {
        (bytes24 head, uint64 count) = ICapabilityRegistry(emitter).log();
        assertEq(head | bytes32(uint256(count)), logWord[emitter], "head and count");
    }

    function _isAsLogged(string memory name) private view {
        Name storage known = names[keccak256(bytes(name))];
        (address owner, address pendingOwner, uint32 count, uint32 epoch, bool deprecated) =
            _registry.nameRecord(name);
        assertEq(owner, known.owner, "owner");
        assertEq(pendingOwner, known.pendingOwner, "pending owner");
        assertEq(count, known.releases.length, "releases");
        assertEq(epoch, known.epoch, "epoch");
        assertTrue(deprecated == known.deprecated, "deprecated");
        if (!known.claimed) return;
        assertEq(_registry.nameOfSkeleton(Reference.skeleton(bytes(name))), name, "name of the skeleton");
        _releasesAreAsLogged(name, known.releases);
        _peopleAreAsLogged(name, known);
    }

    function _releasesAreAsLogged(string memory name, Entry[] storage known) private view {
        ICapabilityRegistry.Release[] memory found = _registry.releases(name, 0, type(uint256).max);
        for (uint256 i; i < found.length; ++i) {
            assertEq(found[i].capUri, string.concat("did:nuwa:cap:", name, "@", known[i].semver), "capUri");
            assertEq(found[i].semver, known[i].semver, "semver");
            assertEq(found[i].cid, known[i].cid, "cid");
            assertEq(found[i].sha256, known[i].sha256, "sha256");
            assertTrue(found[i].yanked == known[i].yanked, "yanked");
            assertTrue(found[i].deprecated == known[i].deprecated, "deprecated");
        }
    }

    /// @dev Who maintains; and the tallies, which are the sums of the votes.
    function _peopleAreAsLogged(string memory name, Name storage known) private view {
        (uint256 upvotes, uint256 downvotes) = _votes.tally(name);
        for (uint256 i; i < _people.length; ++i) {
            address account = _people[i];
            bool maintains = known.maintains[known.epoch][account];
            assertTrue(_registry.isMaintainer(name, account) == maintains, "maintainer");
            int8 value = _votes.voteOf(name, account);
            assertTrue(value == known.votes[account], "vote");
            if (value == 1) upvotes -= _votes.weightOf(account);
            if (value == -1) downvotes -= _votes.weightOf(account);
        }
        assertEq(upvotes + downvotes, 0, "tallies without the votes");
    }

    // ------------------------------------------------------------------------------------------ choosing

    /// @notice Returns one of the names: 8 skeletons in two spellings each, a reserved word, and no name.
    function text(uint8 name) public pure returns (string memory) {
        uint256 chosen = name % 18;
        if (chosen == 16) return "adm1n";
        if (chosen == 17) return "no_name";
        string memory spelling = chosen % SPELLINGS == 0 ? "note-" : "n0te-";
        return string.concat(spelling, string(abi.encodePacked(bytes1(uint8(0x61 + chosen / SPELLINGS)))));
    }

    function person(uint8 who) public view returns (address) {
        return _people[who % _people.length];
    }

    function _publication(uint8 name, uint8 semver, bytes32 digest)
        private
        view
        returns (ICapabilityRegistry.Publication memory)
    {
        string memory version = _semvers[semver % _semvers.length];
        return ICapabilityRegistry.Publication(text(name), version, Reference.rawCid(digest), digest, SECRET);
    }

    function _as(uint8 who) private {
        _as(person(who));
    }

    /// @dev What was refused has left logs in the memory of forge alone: they are forgotten here.
    function _as(address account) private {
        vm.recordLogs();
        vm.prank(account);
    }

    function _did(uint256 expected, uint8 name) private {
        assertEq(applyLogs(), expected, "one event for a change");
        if (expected == 0) return;
        _isAsLogged(text(name));
    }
}
