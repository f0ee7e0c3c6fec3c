import { ponder } from "ponder:registry";
import { published } from "ponder:schema";

ponder.on("Registry:Published", async ({ event, context }) => {
  await context.db.insert(published).values({
    id: event.id,
    sequence: event.args.sequence,
    capUri: event.args.capUri,
    semver: event.args.semver,
    cid: event.args.cid,
    sha256: event.args.sha256,
    publisher: event.args.publisher,
    blockNumber: event.block.number,
    blockTime: event.block.timestamp,
    txHash: event.transaction.hash,
    logIndex: event.log.logIndex,
  });
});
