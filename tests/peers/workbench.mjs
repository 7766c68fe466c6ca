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
const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, reducedMotion: "reduce", timezoneId: "Europe/Rome" });
await context.grantPermissions(["clipboard-read", "clipboard-write"]);
const page = await context.newPage();
page.setDefaultTimeout(20000);
page.on("console", (message) => said.console.push(`${message.type()}: ${message.text()}`));
page.on("pageerror", (error) => said.errors.push(error.message));
const picture = async (name) => process.env.PICTURES && (await page.screenshot({ path: `${process.env.PICTURES}/${name}.png`, fullPage: true }));

await page.goto(url);
said.address = page.url();
const form = page.locator("main > .entry:visible");
const outcome = page.locator("#outcome");
const answer = page.locator("#answer");
const open = async (name) => {
  await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
  await form.getByRole("heading", { name, exact: true }).waitFor();
};
const call = (verb = "Call") => form.getByRole("button", { name: verb, exact: true }).click();
const done = async (name) => {
  await outcome.filter({ hasText: new RegExp(`^${name}: (completed|rejected|the tool|the server|no response|cancelled)`) }).waitFor();
  return outcome.innerText();
};
const history = async () => (await page.locator("#history li").allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
await page.locator("#state", { hasText: "serving" }).waitFor();

// A form made from a schema, by the keyboard alone: what is required, chosen, left out and not a number
await page.keyboard.press("/");
await page.keyboard.type("lend");
await page.keyboard.press("Enter");
const focused = () => page.evaluate(() => document.querySelector(`label[for="${document.activeElement.id}"]`)?.firstChild.textContent);
while ((await focused()) !== "title") await page.waitForTimeout(10);
said.labels = await form.locator(".fields > .field > label").allInnerTexts();
await page.keyboard.type("Dûne ☃");
await page.keyboard.press("Tab");
await page.keyboard.type("many");
await page.keyboard.press("Enter");
said.wrong = await form.locator(".wrong:visible").innerText();
await form.getByLabel("days").fill("12345678901234567890");
await page.keyboard.press("Tab");
await page.keyboard.type("blue");
await page.keyboard.press("Control+Enter");
said.question = await answer.locator(".question > p").first().innerText();
await picture("question");
await page.keyboard.press("Enter");
said.lent = [await done("lend"), await answer.locator("pre").first().innerText()];
said.progress = await answer.locator("progress").evaluate((bar) => [bar.value, bar.max]);
said.heard = await answer.locator("p.quiet").allInnerTexts();
await form.getByRole("button", { name: "As JSON" }).click();
said.json = await form.getByLabel("arguments").inputValue();
await form.getByRole("button", { name: "As a form" }).click();
await picture("lent");
const [docs] = await Promise.all([context.waitForEvent("page"), form.getByRole("link", { name: "Documentation of lend" }).click()]);
said.docs = await docs.locator("article details[open] h3").innerText();
await docs.close();
await page.locator("#filter").press("Escape");

// What fails, and the log of it with its traceback folded
await open("fail");
await call();
said.failed = await done("fail");
await page.locator("#lines li", { hasText: "fail: failed" }).waitFor();
said.traceback = await page.locator("#lines li", { hasText: "broken shelf" }).first().locator("details").count();
said.blocked = await page.locator("#lines li", { hasText: "handler printed" }).count();

// A confirmation, the browser's own fields, rows, a skeleton
await open("plan");
await form.getByLabel("day").fill("2026-12-24");
await form.getByLabel("at", { exact: true }).fill("2026-12-24T19:30");
for (const city of ["Rome", "Bari"]) {
  await form.getByRole("button", { name: "Add a row to stops" }).click();
  await page.keyboard.type(city);
}
await form.getByLabel("nights").first().fill("2");
said.bounds = await form.locator("fieldset > p.quiet").first().innerText();
await form.getByRole("button", { name: "Fill in a skeleton" }).first().click();
said.skeleton = JSON.parse(await form.getByLabel("more").inputValue());
await call();
await picture("plan");
await answer.getByRole("button", { name: "Don't" }).click();
said.declined = await done("plan");
await answer.getByRole("button", { name: "Repeat" }).press("Enter");
await answer.getByRole("button", { name: "Run it" }).click();
await outcome.filter({ hasText: "plan: completed" }).waitFor();
said.plan = await answer.locator("pre").first().innerText();
said.copied = [];
for (const name of ["stubwright call", "curl", "Python"]) {
  await form.getByRole("button", { name: `Copy as ${name}` }).click();
  await form.getByText(`Copied as ${name}.`).waitFor();
  said.copied.push(await page.evaluate(() => navigator.clipboard.readText()));
}
await form.getByRole("button", { name: "As JSON" }).click();
said.sent = JSON.stringify(JSON.parse(await form.getByLabel("arguments").inputValue()));
await form.getByLabel("arguments").fill('{"constructor": "two\\nlines", "more": {}}');
await form.getByRole("button", { name: "As a form" }).click();
said.lines = JSON.parse(await form.getByLabel("arguments").inputValue());

// A list as a table, its next page, and what is different there
await open("books");
await call();
await done("books");
const cells = () => answer.locator("th, td").allInnerTexts();
said.books = [await cells()];
await answer.getByRole("button", { name: "Next page" }).click();
await answer.locator("td", { hasText: "Ulysses" }).waitFor();
said.books.push(await cells());
await answer.getByLabel("Compare with an earlier result").selectOption({ index: 1 });
said.difference = await answer.locator("pre.difference").locator("ins, del").allInnerTexts();
await picture("books");

// The focus is where the next key is needed: on a button that was made anew, and in the form of a link that is pressed again
const focus = async () => (await page.evaluate(() => document.activeElement.innerText || document.activeElement.id)).replace(/\s+/g, " ");
await answer.getByLabel("Compare with an earlier result").selectOption({ index: 0 });
await answer.getByRole("button", { name: "Repeat" }).press("Enter");
await page.locator("#history li", { hasText: "completed" }).nth(4).waitFor();
said.focus = [await focus()];
await answer.getByLabel("Compare with an earlier result").selectOption({ index: 1 });
said.same = await answer.locator("p.difference").innerText();
await page.locator("#history button", { hasText: "plan completed" }).press("Enter");
said.focus.push((await focus()).includes("plan completed"), (await outcome.innerText()).split(":")[0]);
await page.getByRole("navigation").getByRole("link", { name: "books", exact: true }).press("Enter");
said.focus.push(await page.evaluate(() => document.activeElement.tagName));

// What takes too long
await open("wait");
await call();
await answer.locator("progress").waitFor();
await answer.getByRole("button", { name: "Cancel" }).click();
said.cancelled = await done("wait");

// A resource that is an image, and suggestions for a template and a prompt
await open("diary://cover");
await call("Read");
await answer.locator("img").waitFor();
said.image = await answer.locator("img").evaluate((image) => image.naturalWidth);
said.offered = [];
said.read = [];
for (const [name, typed, chosen, verb] of [["diary://books/{title}", "Du", "Dune", "Read"], ["letter", "p", "prose", "Get"]]) {
  await open(name);
  const field = form.getByRole("combobox");
  await field.fill(typed);
  await form.locator("datalist option").first().waitFor({ state: "attached" });
  said.offered.push(await form.locator("datalist option").evaluateAll((all) => all.map((one) => one.value)));
  await field.fill(chosen);
  await call(verb);
  await outcome.filter({ hasText: `${name}: completed` }).waitFor();
  said.read.push(await answer.locator("pre").first().innerText());
}

await open("diary://books/{title}");
await form.getByRole("combobox").fill("Lost");
await call("Read");
said.raised = await done("diary://books/{title}".replace(/[{}]/g, "\\$&"));

// Another caller: the handler sees whom the token is for, and the server refuses what its scopes lack
await page.click("#identity > summary");
await page.getByLabel("subject").fill("bob");
await page.getByLabel("claims").fill('{"tenant": "acme"}');
await page.getByLabel("diary:write").uncheck();
await page.getByRole("button", { name: "Use this identity" }).click();
await page.locator("#who", { hasText: "bob" }).waitFor();
await page.keyboard.press("Escape");
await open("whoami");
await call();
said.whoami = [await done("whoami"), await answer.locator("pre").first().innerText()];
await open("lend");
await call();
said.refused = await done("lend");

// The panes at both sizes, and what some people cannot use
await page.evaluate(axe);
const look = async () => {
  const { violations } = await page.evaluate(() => axe.run());
  said.violations.push(...violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`));
};
const boxes = () => Promise.all(["nav", "main", "#answer", "#calls", "#journal"].map((one) => page.locator(one).first().boundingBox()));
await look();
await picture("workbench");
await page.setViewportSize({ width: 1000, height: 700 });
const wide = await boxes();
await page.setViewportSize({ width: 390, height: 740 });
const phone = await boxes();
await look();
await picture("phone");
said.panes = {
  wide: wide.every((box) => box.y >= 0 && box.y + box.height <= 700 && box.x + box.width <= 1000) ? "in sight" : wide,
  phone: phone.every((box, at) => box.width === 390 && (at === 0 || box.y >= phone[at - 1].y + phone[at - 1].height)) ? "one after the other" : phone,
};
said.outcome = await page.evaluate(() => {
  const button = document.querySelector("#history button");
  const name = button.childNodes[1];
  const text = name.data;
  name.data = `${"x".repeat(64)} `;
  const [right, end] = [button.lastChild, button].map((one) => one.getBoundingClientRect().right);
  name.data = text;
  return right <= end ? "in sight" : "cut off";
});
await page.setViewportSize({ width: 1280, height: 1000 });

// A save: the page loads by itself, and what was typed and answered is still there
const answered = (one) => !one.includes("cancelled");
said.history = (await history()).filter(answered);
process.stdout.write("READY\n");
await page.getByRole("link", { name: "added", exact: true }).waitFor();
said.kept = await form.getByLabel("title").inputValue();
said.recalled = await history();
await page.locator("#summary", { hasText: "compatible" }).waitFor();
said.summary = await page.innerText("#summary");
await page.click("#difference > summary");
said.changes = await page.innerText("#changes");
await picture("saved");
await browser.close();
console.log(JSON.stringify(said));
