// A server on the TypeScript SDK 1.x over Streamable HTTP: node typescript.mjs ANSWERS [stateless]
// ANSWERS: a file with the answer to each cap_uri as JSON. Its tool `resolve_capability` answers as
// a node does, with text and structured content, in plain JSON: with a session for each client, or
// stateless, which the SDK does by a server and a transport for each request.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const answers = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const stateless = process.argv[3] === 'stateless';
const sessions = new Map();

async function open() {
  const server = new McpServer({ name: 'beside', version: '1' });
  server.registerTool(
    'resolve_capability',
    { description: 'Resolve a capability URI.', inputSchema: { cap_uri: z.string() } },
    async ({ cap_uri }) => {
      const { text, body } = answers[cap_uri];
      return { content: [{ type: 'text', text }], structuredContent: body };
    },
  );
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: stateless ? undefined : randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

const http = createServer(async (request, response) => {
  const transport = sessions.get(request.headers['mcp-session-id']) ?? (await open());
  await transport.handleRequest(request, response);
});
http.listen(0, '127.0.0.1', () => console.log(http.address().port));
