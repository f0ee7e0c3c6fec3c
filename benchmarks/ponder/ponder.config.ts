// The chain, the contract and the database come from benchmarks/indexer/ponder.py, by environment.
import { createConfig } from "ponder";
import { RegistryAbi } from "./src/abi";

export default createConfig({
  database: { kind: "postgres", connectionString: process.env.BENCH_DATABASE_URL! },
  chains: {
    bench: {
      id: 31337,
      rpc: process.env.BENCH_RPC!,
      ethGetLogsBlockRange: process.env.BENCH_RANGE ? Number(process.env.BENCH_RANGE) : undefined,
    },
  },
  contracts: {
    Registry: {
      chain: "bench",
      abi: RegistryAbi,
      address: process.env.BENCH_ADDRESS as `0x${string}`,
      startBlock: Number(process.env.BENCH_START),
      endBlock: Number(process.env.BENCH_END),
    },
  },
});
