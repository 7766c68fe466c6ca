// Answers the calls of generated clients with results of a file, and prints which of them the clients accept.
import { readFileSync } from "node:fs";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { TypedClient } from "./generated/typescript/stubwright.ts";

interface Row {
  module: string;
  client: string;
  method: string;
  results: object[];
}

class Answers implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  structuredContent: object = {};

  start = () => Promise.resolve();
  close = () => Promise.resolve();

  send(message: JSONRPCMessage): Promise<void> {
    if (!("method" in message && "id" in message)) return Promise.resolve();
    const opened = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } };
    const result = message.method === "initialize" ? opened : { content: [], structuredContent: this.structuredContent };
    queueMicrotask(() => this.onmessage?.({ jsonrpc: "2.0", id: message.id, result }));
    return Promise.resolve();
  }
}

const accepted: boolean[] = [];
for (const row of JSON.parse(readFileSync(process.argv[2] as string, "utf8")) as Row[]) {
  const module = (await import(row.module)) as Record<string, typeof TypedClient>;
  const transport = new Answers();
  const client = await module[row.client]?.connect(transport, { client: { versionNegotiation: { mode: "legacy" } } });
  const methods = client as unknown as Record<string, (args: object) => Promise<unknown>>;
  for (const result of row.results) {
    transport.structuredContent = result;
    accepted.push(await (methods[row.method]?.({}) ?? Promise.reject()).then(() => true, () => false));
  }
}
console.log(JSON.stringify(accepted));
