// The CPU time of a typed TypeScript client's calls, as a ratio of the SDK's client: over stdio, and over HTTP in both eras.
//
//     node bench/typescript.mjs [CALLS] [ROUNDS]
//
// Needs Node.js from 22.18 on, npm, and `stubwright` and `python` on the path. Both clients validate results, call the same
// weather server in turns, and run in this process.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [calls, rounds] = [process.argv[2] ?? 100, process.argv[3] ?? 60].map(Number);
const root = path.dirname(import.meta.dirname);
const env = { ...process.env, PYTHONPATH: ["generated", "examples"].map((each) => path.join(root, each)).join(path.delimiter) };
const command = ["python", "-m", "weather_mcp"];
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

async function race(label, connectBare, connectTyped) {
  const [bare, typed] = [await connectBare(), await connectTyped()];
  await bare.listTools(); // for the schemas of results
  const args = { location: "Paris", units: "metric" };
  const contestants = [
    ["SDK", async () => (await bare.callTool({ name: "get_weather", arguments: args })).structuredContent],
    ["typed", () => typed.getWeather(args)],
  ];
  const spent = contestants.map(() => []);
  for (let round = 0; round < rounds + 5; round += 1) {
    for (const place of round % 2 ? [1, 0] : [0, 1]) {
      const begin = process.cpuUsage();
      for (let call = 0; call < calls; call += 1) await contestants[place][1]();
      const { user, system } = process.cpuUsage(begin);
      if (round >= 5) spent[place].push((user + system) / calls); // the first rounds warm up
    }
  }
  const ratio = median(spent[1].map((each, round) => each / spent[0][round]));
  console.log(`${label.padEnd(16)} SDK ${median(spent[0]).toFixed(0)} us, typed ${median(spent[1]).toFixed(0)} us: ${ratio.toFixed(2)}`);
  await Promise.all([bare.close(), typed.close()]);
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "typescript-"));
let server;
try {
  const made = ["generate", "-q", path.join(root, "specs/weather.yaml"), "--emit", "typescript", "-o", folder];
  execFileSync("stubwright", made, { stdio: "inherit" });
  fs.writeFileSync(path.join(folder, "package.json"), '{ "private": true, "type": "module" }');
  execFileSync("npm", ["install", "--silent", "@modelcontextprotocol/client@2"], { cwd: folder, stdio: "inherit" });
  const modules = ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio", "./typescript/weather_mcp.ts"];
  fs.writeFileSync(path.join(folder, "index.js"), modules.map((each) => `export * from "${each}";\n`).join(""));
  const sdk = await import(path.join(folder, "index.js"));

  const connectBare = async (transport, mode) => {
    const client = new sdk.Client({ name: "bench", version: "1" }, { versionNegotiation: { mode } });
    await client.connect(transport);
    return client;
  };
  const start = { command: command[0], args: command.slice(1), env };
  await race(
    "stdio",
    () => connectBare(new sdk.StdioClientTransport(start), "auto"),
    () => sdk.WeatherClient.connect(command, { process: { env } }),
  );
  const free = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => free.once("listening", resolve));
  const { port } = free.address();
  await new Promise((resolve) => free.close(resolve));
  server = spawn(command[0], [...command.slice(1), "--http", `127.0.0.1:${port}`], { env, stdio: "ignore" });
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  while (!(await fetch(url).then(() => true, () => false))) await sleep(50);
  for (const [label, mode] of [["HTTP 2026-07-28", "auto"], ["HTTP 2025-11-25", "legacy"]]) {
    await race(
      label,
      () => connectBare(new sdk.StreamableHTTPClientTransport(url), mode),
      () => sdk.WeatherClient.connect(url, { client: { versionNegotiation: { mode } } }),
    );
  }
} finally {
  server?.kill();
  fs.rmSync(folder, { recursive: true });
}
