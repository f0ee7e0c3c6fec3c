// Builds requests by swagger-client's rules of OpenAPI 3 and Swagger 2.0, and sends them to an echo server.
//
// Usage: node imports.mjs PATH_OF_NODE_MODULES. Each line of stdin is {id, echo, spec, parameters, body, contentType,
// authorized}; the operation of the specification is `op`. Each line of stdout is {id, origin} or {id, error}.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { join } from "node:path";

const require = createRequire(join(process.argv[2], "swagger-client", "package.json"));
const { buildRequest } = require("swagger-client");

async function send({ id, echo, spec, parameters, body, contentType, authorized }) {
  const request = buildRequest({
    spec,
    operationId: "op",
    parameters,
    requestBody: body,
    requestContentType: contentType,
    // Swagger 2.0: what the document requires is not read from the specification.
    securities: authorized ? { authorized, specSecurity: spec.security } : undefined,
    contextUrl: "https://api.example.com/",
  });
  const [, origin, rest] = /^(https?:\/\/[^/?]*)(.*)$/s.exec(request.url);
  const isJson = /json/.test(request.headers["Content-Type"] ?? "application/json");
  const sent = request.body != null && isJson; // the library leaves this to who calls it
  await fetch(`${echo}/o${id}${rest}`, {
    method: request.method,
    headers: request.headers,
    body: sent ? JSON.stringify(request.body) : request.body,
  }).then((reply) => reply.arrayBuffer());
  return origin;
}

console.warn = () => {};
const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", async (line) => {
  const asked = JSON.parse(line);
  let answer;
  try {
    answer = { id: asked.id, origin: await send(asked) };
  } catch (error) {
    answer = { id: asked.id, error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
