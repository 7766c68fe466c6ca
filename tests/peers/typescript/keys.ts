// Calls a tool with a key over HTTP, whose first two answers are lost, and prints what it gets as JSON.
import { DeskClient } from "./generated/typescript/desk_mcp.ts";

const keys: unknown[] = [];
const client = await DeskClient.connect(process.argv[2] as string, {
  http: {
    async fetch(url, init) {
      const response = await fetch(url, init);
      const { method, params } = JSON.parse(typeof init?.body === "string" ? init.body : "{}");
      if (method !== "tools/call" || params.name !== "pay") return response;
      keys.push(params._meta["io.modelcontextprotocol/idempotencyKey"]);
      if (keys.length > 2) return response;
      await response.text();
      if (keys.length === 1) throw new TypeError("fetch failed");
      return new Response("try later", { status: 503 });
    },
  },
});
const first = await client.pay({ amount: 1 });
const second = await client.pay({ amount: 1 }, { idempotencyKey: "mine" });
const third = await client.pay({ amount: 1 }, { idempotencyKey: "mine" });
const options = { timeout: 5_000, idempotencyKey: "mine" }; // not a literal, in which TypeScript rejects the key
const refused = await client.listNotes({}, options).catch(String);
console.log(JSON.stringify({ sent: keys.length, attempts: new Set(keys.slice(0, 3)).size, first, second, third, refused }));
await client.close();
