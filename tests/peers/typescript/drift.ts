// Compares the tools of the server of desk.yaml, and rows of tools from a file, and prints the differences as JSON.
import { readFileSync } from "node:fs";
import type { Client } from "@modelcontextprotocol/client";
import { DeskClient } from "./generated/typescript/desk_mcp.ts";
import { tools as compiled } from "./generated/typescript/sample_mcp.tools.ts";
import { findChanges } from "./generated/typescript/stubwright.drift.ts";
import { DriftError } from "./generated/typescript/stubwright.ts";

class OldClient extends DeskClient {
  static override readonly loadTools = async () => ({ tools: [{ name: "pay", inputSchema: { type: "object" } }] });
}

const [, , path, ...command] = process.argv as [string, string, string, string, ...string[]];
const env = { PYTHONPATH: process.env["PYTHONPATH"] ?? "" };
const warnings: unknown[] = [];
console.warn = (text) => warnings.push(text);
for (const drift of ["warn", "error"] as const) await (await DeskClient.connect(command, { process: { env }, drift })).close();
await (await OldClient.connect(command, { process: { env } })).close();
const none = warnings.length;
await (await OldClient.connect(command, { process: { env }, drift: "warn" })).close();
const error = await OldClient.connect(command, { process: { env }, drift: "error" }).catch((error: unknown) => error);

const changes: string[][] = [];
for (const { revision, tools } of JSON.parse(readFileSync(path, "utf-8"))) {
  const raw = { listTools: async () => ({ tools }), getNegotiatedProtocolVersion: () => revision };
  changes.push(await findChanges(raw as unknown as Client, compiled));
}
console.log(JSON.stringify({ none, warnings, error: error instanceof DriftError && error.changes, changes }));
