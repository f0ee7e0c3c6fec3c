// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

import {ICapabilityRegistry} from "../src/interfaces/ICapabilityRegistry.sol";
import {Reference} from "./Reference.sol";
import {Test} from "./Test.sol";

/// @notice What a user pays: a name of 24 characters and a version of 11, in a registry that is in use.
/// The exact figures are in `snapshots/CapabilityRegistry.json`; a change to them fails the test, and
/// `FORGE_SNAPSHOT_CHECK=false forge test` writes them anew.
contract GasTest is Test {
    string private constant GROUP = "CapabilityRegistry";
    string private constant NAME = "weather-reporter-by-nuwa";

    function test_GasStaysWithinItsBudgets() public {
        ICapabilityRegistry registry = newRegistry(0, 0);
        assertTrue(address(registry).code.length <= 20_000, "code within 20 kB");
        registry.publish("first-name", "1.0.0", Reference.rawCid(sha256("x")), sha256("x"));

        registry.publish(NAME, "10.200.3000", Reference.rawCid(sha256("a")), sha256("a"));
        uint256 gas = vm.snapshotGasLastCall(GROUP, "publish_first");
        assertTrue(gas <= 145_000, "first release of a name within 145 000 gas");

        registry.publish(NAME, "10.200.3001", Reference.rawCid(sha256("b")), sha256("b"));
        gas = vm.snapshotGasLastCall(GROUP, "publish_further");
        assertTrue(gas <= 95_000, "further release within 95 000 gas");

        registry.yank(NAME, "10.200.3001", 1, "broken: leaks the user's token");
        gas = vm.snapshotGasLastCall(GROUP, "yank");
        assertTrue(gas <= 45_000, "yank within 45 000 gas");
    }
}
