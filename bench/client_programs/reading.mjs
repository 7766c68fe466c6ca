// The TypeScript SDK, 1 and 2: prints a JSON object of what it makes of each tool, as reading.py has it.
// Arguments: "1" or "2", the command of the server as JSON.
const [release, target] = process.argv.slice(2);
const isFirst = release === "1";
const { Client } = await import(isFirst ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = await import(
  isFirst ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio"
);

const [command, ...args] = JSON.parse(target);
const client = new Client({ name: "references", version: "1" });
await client.connect(new StdioClientTransport({ command, args }));
const schemas = {};
const values = {};
for (const tool of (await client.listTools()).tools) {
  schemas[tool.name] = tool.inputSchema;
  values[tool.name] = await client.callTool({ name: tool.name, arguments: {} }).then(
    (result) => ({ value: result.structuredContent }),
    (error) => ({ error: `${error.name}: ${error.message}` }),
  );
}
await client.close();
console.log(JSON.stringify({ schemas, values }));
process.exit(0);
