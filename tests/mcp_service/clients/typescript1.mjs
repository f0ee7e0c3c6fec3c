// A client on the TypeScript SDK 1.x: node typescript1.mjs URL, or -- COMMAND… for stdio.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { answerLines, Inbox } from './lines.mjs';

const [, , target, ...command] = process.argv;
const transport =
  target === '--'
    ? new StdioClientTransport({ command: command[0], args: command.slice(1) })
    : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: 'tests', version: '1' });
const updates = new Inbox();
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (note) => updates.put(note.params.uri));
client.setNotificationHandler(ResourceListChangedNotificationSchema, () => updates.put('list'));
await client.connect(transport);

await answerLines({
  version: () => transport.protocolVersion,
  tools: async () => (await client.listTools()).tools,
  call: ({ tool, given }) => client.callTool({ name: tool, arguments: given }),
  read: async ({ uri }) => (await client.readResource({ uri })).contents,
  subscribe: async ({ uri }) => void (await client.subscribeResource({ uri })),
  update: () => updates.take(),
});
await client.close();
