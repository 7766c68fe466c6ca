// Calls each method of a client whose tools have hostile names, and prints the names that are sent.
import type { Client } from "@modelcontextprotocol/client";
import { HostileClient } from "./generated/typescript/hostile_mcp.ts";

const sent: string[] = [];
const raw = {
  callTool({ name }: { name: string }) {
    sent.push(name);
    return Promise.resolve({ content: [], structuredContent: {} });
  },
};
// A promise of it: a client that had a method `then` would be called by `await`.
const client = await Promise.resolve(new HostileClient(raw as unknown as Client));
const methods = client as unknown as Record<string, (args: object) => Promise<unknown>>;
for (const name of Object.getOwnPropertyNames(HostileClient.prototype)) {
  if (name !== "constructor") await methods[name]?.({});
}
console.log(JSON.stringify(sent.sort()));
