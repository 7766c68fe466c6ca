// Calls a tool with a key over HTTP, whose first two answers are lost, and prints what it gets as JSON.
import { DeskClient } from "./generated/typescript/desk_mcp.ts";

const keys: unknown[] = [];
let retryAfter = "0";
let isDown = false;
const abort = new AbortController();
const client = await DeskClient.connect(process.argv[2] as string, {
  http: {
    async fetch(url, init) {
      const response = await fetch(url, init);
      const { method, params } = JSON.parse(typeof init?.body === "string" ? init.body : "{}");
      if (method !== "tools/call" || params.name !== "pay") return response;
      keys.push(params._meta["io.modelcontextprotocol/idempotencyKey"]);
      if (keys.length > 2 && !isDown) return response;
      await response.text();
      if (keys.length === 1) throw new TypeError("fetch failed");
      if (params.arguments.amount === 0) setTimeout(() => abort.abort());
      return new Response("try later", { status: 503, headers: { "Retry-After": retryAfter } });
    },
  },
});
const first = await client.pay({ amount: 1 });
const second = await client.pay({ amount: 1 }, { idempotencyKey: "mine" });
const third = await client.pay({ amount: 1 }, { idempotencyKey: "mine" });
const options = { timeout: 5_000, idempotencyKey: "mine" }; // not a literal, in which TypeScript rejects the key
const refused = await client.listNotes({}, options).catch(String);
const begin = Date.now();
const unsent = await client.pay({ amount: 1n as unknown as number }).catch((error: unknown) => error instanceof TypeError);
isDown = true;
const sent = keys.length;
retryAfter = "3600";
const late = await client.pay({ amount: 1 }).catch(String);
retryAfter = new Date(Date.now() + 3_600_000).toUTCString();
await client.pay({ amount: 1 }).catch(String);
retryAfter = "30";
await client.pay({ amount: 0 }, { signal: abort.signal }).catch(String);
console.log(
  JSON.stringify({
    sent,
    attempts: new Set(keys.slice(0, 3)).size,
    first,
    second,
    third,
    refused,
    unsent,
    late,
    whileDown: keys.length - sent,
    isPrompt: Date.now() - begin < 20_000,
  }),
);
await client.close();
