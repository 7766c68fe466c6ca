// The client that the official conformance suite drives: the generated `scenario_mcp.ts`, which calls what each scenario wants.
// The suite appends its server's URL to the command, and names the scenario in the environment.
import { ClientCredentialsProvider } from "@modelcontextprotocol/client";
import { ScenarioClient } from "./typescript/scenario_mcp.ts";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const credentials = { clientId: context.client_id, clientSecret: context.client_secret };
const client = await ScenarioClient.connect(process.argv[2], {
  client: { capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} } },
  http: scenario.startsWith("auth/") ? { authProvider: new ClientCredentialsProvider(credentials) } : {},
});
client.raw.setRequestHandler("elicitation/create", ({ params }) => {
  const fields = Object.entries(params.requestedSchema.properties);
  const chosen = fields.filter(([, field]) => field.type === "boolean" && !("default" in field));
  return { action: "accept", content: Object.fromEntries(chosen.map(([name]) => [name, true])) };
});
client.raw.setRequestHandler("sampling/createMessage", () => {
  return { role: "assistant", model: "none", content: { type: "text", text: "Paris" } };
});
client.raw.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///tmp" }] }));

function call(tool, args) {
  return client[tool.replace(/[-_](.)/g, (_, letter) => letter.toUpperCase())](args);
}

async function list() {
  return (await client.raw.listTools()).tools;
}

async function callAll() {
  for (const { name, inputSchema } of await list()) if (!inputSchema.required?.length) await call(name);
}

const plays = {
  tools_call: () => call("add_numbers", { a: 5, b: 3 }),
  async "http-standard-headers"() {
    await callAll();
    for (const { uri } of (await client.raw.listResources()).resources) await client.raw.readResource({ uri });
    for (const { name } of (await client.raw.listPrompts()).prompts) await client.raw.getPrompt({ name });
  },
  async "http-custom-headers"() {
    for (const each of context.toolCalls) await call(each.name, each.arguments);
  },
  async "http-invalid-tool-headers"() {
    await list();
    await call("valid_tool", { region: "us-west1" });
  },
  "json-schema-ref-no-deref": list,
  async "json-schema-2020-12-preservation"() {
    const { inputSchema } = (await list()).find(({ name }) => name === "json_schema_2020_12_tool");
    await call("json_schema_echo", { schema: inputSchema });
  },
  async "sep-2322-client-request-state"() {
    const calls = ["echo_state", "no_state", "unrelated", "no_result_type"].map((name) => call(`test_mrtr_${name}`));
    const statuses = (await Promise.allSettled(calls)).map(({ status }) => status);
    // The SDK requires the `resultType` that the last result omits.
    if (statuses.join() !== "fulfilled,fulfilled,fulfilled,rejected") throw new Error(statuses.join());
  },
};

await (plays[scenario] ?? callAll)();
await client.close();
