// Calls the server of desk.yaml by its generated client, and prints what it gets as JSON.
import { DeskClient } from "./generated/typescript/desk_mcp.ts";
import { NotConfirmed, ToolError } from "./generated/typescript/stubwright.ts";

const [, , ...command] = process.argv as [string, string, string, ...string[]];
const env = { PYTHONPATH: process.env["PYTHONPATH"] ?? "" };
const asked: unknown[] = [];
const client = await DeskClient.connect(command, {
  process: { env },
  confirm: (tool, args) => {
    asked.push([tool, args]);
    return asked.length > 1;
  },
});

async function failure(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    return error;
  }
}

const ids: number[] = [];
for await (const note of client.pages.listNotes({ tag: "work" })) ids.push(note.id);
const first = await client.listNotes();
const refused = await failure(client.deleteNotes({ ids: [1] }));
const failed = await failure(client.deleteNotes({ ids: [1, 2] }));
await failure(client.deleteNotes({ ids: [3] }, { signal: AbortSignal.abort() })); // without asking
const progress: unknown[] = [];
const abort = new AbortController();
const aborted = await failure(
  client.wait(
    {},
    {
      signal: abort.signal,
      onprogress: (each) => {
        progress.push(each);
        abort.abort("enough");
      },
    },
  ),
);
const late = await failure(client.wait({}, { timeout: 50 }));
const [note] = await client.readNote({ id: "a b" });
const { values } = await client.completePromptSummary("id", "");
const [message] = await client.promptSummary({ id: "3" });
console.log(
  JSON.stringify({
    ids,
    first: first.notes.length,
    refused: refused instanceof NotConfirmed && refused.message,
    failed: failed instanceof ToolError && failed.message,
    asked,
    progress,
    aborted: aborted instanceof Error,
    late: late instanceof Error && late.message,
    note: note !== undefined && "text" in note && note.text,
    values,
    message: message?.content,
    revision: client.raw.getNegotiatedProtocolVersion(),
    server: client.raw.getServerVersion()?.name,
  }),
);
await client[Symbol.asyncDispose]();
