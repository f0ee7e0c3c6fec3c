// A client on the TypeScript SDK 2.x: node typescript2.mjs ERA URL, or ERA -- COMMAND… for stdio.
// ERA is `legacy` (the handshake) or `auto` (2026-07-28 where the server has it).
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { answerLines, Inbox } from './lines.mjs';

const [, , era, target, ...command] = process.argv;
const transport =
  target === '--'
    ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
    : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode: era } });
const updates = new Inbox();
client.setNotificationHandler('notifications/resources/updated', (note) => updates.put(note.params.uri));
client.setNotificationHandler('notifications/resources/list_changed', () => updates.put('list'));
await client.connect(transport);

const subscribe = ({ uri }) =>
  era === 'legacy'
    ? client.subscribeResource({ uri })
    : client.listen(uri ? { resourceSubscriptions: [uri] } : { resourcesListChanged: true });

await answerLines({
  version: () => client.getNegotiatedProtocolVersion(),
  tools: async () => (await client.listTools()).tools,
  call: ({ tool, given }) => client.callTool({ name: tool, arguments: given }),
  read: async ({ uri }) => (await client.readResource({ uri })).contents,
  subscribe: async (what) => void (await subscribe(what)),
  update: () => updates.take(),
});
await client.close();
