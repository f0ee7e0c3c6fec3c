import { index, onchainTable } from "ponder";

export const published = onchainTable(
  "published",
  (t) => ({
    id: t.text().primaryKey(),
    sequence: t.bigint().notNull(),
    capUri: t.text().notNull(),
    semver: t.text().notNull(),
    cid: t.text().notNull(),
    sha256: t.hex().notNull(),
    publisher: t.hex().notNull(),
    blockNumber: t.bigint().notNull(),
    blockTime: t.bigint().notNull(),
    txHash: t.hex().notNull(),
    logIndex: t.integer().notNull(),
  }),
  (table) => ({ byUri: index().on(table.capUri) }),
);
