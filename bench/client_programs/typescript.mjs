// The TypeScript SDK, 1 and 2: does the steps that its arguments name, and prints a JSON object of their outcomes.
// Arguments: "1", "2" or "2-auto" (which finds out what revision the server speaks), the server as JSON, the steps.
const [release, target, ...names] = process.argv.slice(2);
const isFirst = release === "1";
const from = (path) => import(isFirst ? `@modelcontextprotocol/sdk/${path}` : "@modelcontextprotocol/client");
const { Client } = await from("client/index.js");
const { StreamableHTTPClientTransport } = await from("client/streamableHttp.js");
const { StdioClientTransport } = await import(
  isFirst ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio"
);
const ELICIT = isFirst ? (await from("types.js")).ElicitRequestSchema : "elicitation/create";

const client = new Client(
  { name: "clients", version: "1" },
  {
    capabilities: { elicitation: {} },
    ...(release === "2-auto" ? { versionNegotiation: { mode: "auto" } } : {}),
  },
);
client.setRequestHandler(ELICIT, async () => ({
  action: "accept",
  content: { username: "ada", email: "ada@example.com" },
}));

const call = (name, args = {}, onprogress = undefined) =>
  isFirst
    ? client.callTool({ name, arguments: args }, undefined, { onprogress })
    : client.callTool({ name, arguments: args }, { onprogress });

const steps = {
  initialize: async () => [revision ?? client.getNegotiatedProtocolVersion(), client.getServerVersion().name],
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: async () => (await call("test_simple_text")).content[0].text,
  "structured result": async () => (await call("get_weather", { location: "Paris" })).structuredContent,
  "tool error": async () => {
    const result = await call("test_error_handling");
    return [result.isError, result.content[0].text];
  },
  progress: async () => {
    const heard = [];
    await call("test_tool_with_progress", {}, ({ progress }) => heard.push(progress));
    return heard;
  },
  question: async () => (await call("test_elicitation", { message: "Who are you?" })).content[0].text,
  resource: async () => (await client.readResource({ uri: "test://static-text" })).contents[0].text,
  prompt: async () => (await client.getPrompt({ name: "test_simple_prompt" })).messages[0].content.text,
};

const failure = (error) => ({ error: `${error.name}: ${error.message}` });
const outcomes = {};
let revision;
try {
  const server = JSON.parse(target);
  const transport =
    typeof server === "string"
      ? new StreamableHTTPClientTransport(new URL(server))
      : new StdioClientTransport({ command: server[0], args: server.slice(1) });
  if (isFirst) {
    const set = transport.setProtocolVersion?.bind(transport); // the only place where release 1 tells it
    transport.setProtocolVersion = (version) => {
      revision = version;
      set?.(version);
    };
  }
  await client.connect(transport);
  for (const name of names) {
    outcomes[name] = await steps[name]().catch(failure);
  }
  await client.close();
} catch (error) {
  outcomes.connection = failure(error);
}
console.log(JSON.stringify(outcomes));
process.exit(0);
