export const RegistryAbi = [
  {
    type: "event",
    name: "Published",
    anonymous: false,
    inputs: [
      { name: "nameId", type: "bytes32", indexed: true },
      { name: "publisher", type: "address", indexed: true },
      { name: "sequence", type: "uint64", indexed: false },
      { name: "capUri", type: "string", indexed: false },
      { name: "semver", type: "string", indexed: false },
      { name: "cid", type: "string", indexed: false },
      { name: "sha256", type: "bytes32", indexed: false },
    ],
  },
] as const;
