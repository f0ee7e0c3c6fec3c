// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {RegistryTest} from "./RegistryTest.sol";

/// @notice What a user pays: a name of 24 characters and a version of 11, in a registry that is in use.
/// The exact figures are in `snapshots/CapabilityRegistry.json`; a change to them fails the test, and
/// `FORGE_SNAPSHOT_CHECK=false forge test` writes them anew.
contract GasTest is RegistryTest {
    string private constant GROUP = "CapabilityRegistry";
    string private constant NAME = "weather-reporter-by-nuwa";
    uint256 private constant BATCH = 20;

    // The key of Anvil's first account, which everybody knows.
    uint256 private constant KEY = 0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80;

    function setUp() public {
        registry = _inUse(0, 0);
    }

    function test_CodeStaysWithinItsBudget() public view {
        assertTrue(address(registry).code.length <= 20_000, "code within 20 kB");
    }

    function test_PublishingStaysWithinItsBudgets() public {
        _publish(NAME, 0);
        _spent("publish_first", 145_000);
        _publish(NAME, 1);
        _spent("publish_further", 95_000);
    }

    function test_BatchesStayWithinTheirBudgets() public {
        ICapabilityRegistry.Publication[] memory batch = new ICapabilityRegistry.Publication[](BATCH);
        for (uint256 i; i < BATCH; ++i) {
            batch[i] = _publication(NAME, i + 1);
        }
        _publish(NAME, 0);
        registry.publishBatch(batch);
        _each("publish_batch_each", 65_000);

        for (uint256 i; i < BATCH; ++i) {
            batch[i].name = string.concat("weather-reporter-by-nu", vm.toString(i + 10));
            _publish(batch[i].name, 0);
        }
        registry.publishBatch(batch);
        _each("publish_batch_each_of_20_names", 70_000);
    }

    function test_YankStaysWithinItsBudget() public {
        _publish(NAME, 0);
        registry.yank(NAME, _semver(0), 0, "broken: leaks the user's token");
        _spent("yank", 45_000);
    }

    function test_ClaimingStaysWithinItsBudgets() public {
        registry.claim(NAME, 0);
        _spent("claim", 145_000);
        registry = _inUse(60, 1 days);
        registry.commit(registry.commitmentOf(NAME, address(this), SECRET));
        _spent("commit", 55_000);
        vm.warp(vm.getBlockTimestamp() + 60);
        ICapabilityRegistry.Publication memory one = _publication(NAME, 0);
        registry.claimAndPublish(one.name, one.semver, one.cid, one.sha256, SECRET);
        _spent("publish_first_revealed", 145_000);
    }

    function test_PublishingWithASignatureStaysWithinItsBudget() public {
        address author = vm.addr(KEY);
        for (uint256 nonce; nonce < 2; ++nonce) {
            ICapabilityRegistry.Publication memory one = _publication(NAME, nonce);
            bytes memory signature = signDigest(KEY, digestOf(one, author, nonce, type(uint64).max));
            registry.publishWithSignature(one, author, type(uint64).max, signature);
        }
        _spent("publish_with_signature", 110_000); // a further release
    }

    function _inUse(uint256 minAge, uint256 maxAge) private returns (ICapabilityRegistry fresh) {
        fresh = newRegistry(minAge, maxAge);
        if (minAge != 0) {
            fresh.commit(fresh.commitmentOf("first-name", address(this), SECRET));
            vm.warp(vm.getBlockTimestamp() + minAge);
        }
        bytes32 digest = sha256("x");
        fresh.claimAndPublish("first-name", "1.0.0", Reference.rawCid(digest), digest, SECRET);
    }

    function _publish(string memory name, uint256 number) private {
        ICapabilityRegistry.Publication memory one = _publication(name, number);
        registry.publish(one.name, one.semver, one.cid, one.sha256);
    }

    function _publication(string memory name, uint256 number)
        private
        pure
        returns (ICapabilityRegistry.Publication memory)
    {
        bytes32 digest = keccak256(abi.encode(name, number));
        return ICapabilityRegistry.Publication(name, _semver(number), Reference.rawCid(digest), digest, 0);
    }

    function _semver(uint256 number) private pure returns (string memory) {
        return string.concat("10.200.", vm.toString(3000 + number));
    }

    function _each(string memory entry, uint256 budget) private {
        uint256 gas = vm.lastCallGas().gasTotalUsed / BATCH;
        vm.snapshotValue(GROUP, entry, gas);
        assertTrue(gas <= budget, string.concat(entry, " within ", vm.toString(budget), " gas"));
    }

    function _spent(string memory entry, uint256 budget) private {
        uint256 gas = vm.snapshotGasLastCall(GROUP, entry);
        assertTrue(gas <= budget, string.concat(entry, " within ", vm.toString(budget), " gas"));
    }
}
