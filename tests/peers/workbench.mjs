// Opens the page of `stubwright dev`, tries its tools as a person would, and prints what it saw as JSON.
// MODULES and CHROMIUM are as for browser.mjs. The manifest is that of tests/commands/test_workbench.py. What is printed as
// `READY` asks for the next save, which the page sees without being loaded by anybody.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
const packed = process.env.CHROMIUM
  ? null
  : (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;
if (packed) packed.setGraphicsMode = false;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || (await packed.executablePath()),
  args: packed ? packed.args : ["--no-sandbox"],
});
const said = { console: [], errors: [], violations: [] };
const page = await (await browser.newContext({ viewport: { width: 1280, height: 1000 }, reducedMotion: "reduce" })).newPage();
page.setDefaultTimeout(50000);
page.on("console", (message) => said.console.push(`${message.type()}: ${message.text()}`));
page.on("pageerror", (error) => said.errors.push(error.message));
const picture = async (name) => process.env.PICTURES && (await page.screenshot({ path: `${process.env.PICTURES}/${name}.png`, fullPage: true }));

await page.goto(url);
said.address = page.url();
const box = (name) => page.locator(`section[aria-label="Try ${name}"]`);
const open = (name) => page.click(`summary:has(#tool-${name}-name)`);
const done = async (name) => {
  const status = box(name).locator(".outcome > p[role=status]");
  await status.filter({ hasText: /completed|failed|error|no answer|cancelled/ }).waitFor();
  return status.innerText();
};
await page.locator("#state", { hasText: "serving" }).waitFor();

// A form made from a schema: what is required, chosen, left out and not a number
await open("lend");
const lend = box("lend");
said.labels = await lend.locator(".field > label").allInnerTexts();
await lend.getByLabel("title").fill("Dûne ☃");
await lend.getByLabel("days").fill("many");
await lend.getByRole("button", { name: "Call" }).click();
said.wrong = await lend.locator(".wrong:visible").innerText();
await lend.getByLabel("days").fill("12345678901234567890");
await lend.getByLabel("shelf").selectOption({ label: "blue" });
await lend.getByRole("button", { name: "Call" }).click();
said.question = await lend.locator(".question > p").first().innerText();
await picture("question");
await lend.locator(".question").getByLabel("sure").selectOption({ label: "true" });
await lend.getByRole("button", { name: "Answer" }).click();
said.lent = [await done("lend"), await lend.locator(".outcome pre").first().innerText()];
said.progress = await lend.locator(".outcome progress").evaluate((bar) => [bar.value, bar.max]);
said.heard = await lend.locator(".outcome p.quiet").allInnerTexts();
await lend.getByRole("button", { name: "As JSON" }).click();
said.json = await lend.getByLabel("arguments").inputValue();
await picture("lent");

// What fails, and the log of it with its traceback folded
await open("fail");
await box("fail").getByRole("button", { name: "Call" }).click();
said.failed = await done("fail");
await page.click("#journal > summary");
await page.locator("#lines li", { hasText: "fail: failed" }).waitFor();
said.traceback = await page.locator("#lines li", { hasText: "broken shelf" }).first().locator("details").count();
said.blocked = await page.locator("#lines li", { hasText: "handler printed" }).count();

// Another caller: the handler sees whom the token is for
await page.click("#identity > summary");
await page.getByLabel("subject").fill("bob");
await page.getByLabel("claims").fill('{"tenant": "acme"}');
await page.getByLabel("diary:write").uncheck();
await page.getByRole("button", { name: "Be this one" }).click();
await page.locator("#who", { hasText: "bob" }).waitFor();
await open("whoami");
await box("whoami").getByRole("button", { name: "Call" }).click();
said.whoami = [await done("whoami"), await box("whoami").locator(".outcome pre").first().innerText()];
await page.evaluate(axe);
const { violations } = await page.evaluate(() => axe.run());
said.violations = violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
await picture("workbench");

// A save: the page loads by itself, and what was typed is still there
process.stdout.write("READY\n");
await page.locator("#tool-added-name").waitFor();
said.kept = await page.locator('section[aria-label="Try lend"] label:has-text("title") + input').inputValue();
await page.locator("#summary", { hasText: "compatible" }).waitFor();
said.summary = await page.innerText("#summary");
await page.click("#difference > summary");
said.changes = await page.innerText("#changes");
await picture("saved");
await browser.close();
console.log(JSON.stringify(said));
