// Opens a page of `toolwright docs`, uses it as a person would, and prints what happened as JSON.
// MODULES is the folder of the Node modules; CHROMIUM the program, or empty for the one among the modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const packed = process.env.CHROMIUM
  ? null
  : (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || (await packed.executablePath()),
  args: packed ? packed.args : ["--no-sandbox"],
});

const said = { requests: [], console: [], errors: [] };
const open = async (options) => {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options })).newPage();
  page.on("request", (request) => said.requests.push(request.url()));
  page.on("console", (message) => said.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.errors.push(error.message));
  page.on("dialog", (dialog) => said.errors.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  await page.goto(url);
  return page;
};
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const visible = (page) => page.$$eval("article", (all) => all.filter((one) => one.offsetParent).map((one) => one.id));
const focused = (page) =>
  page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("href") || document.activeElement.tagName);
const picture = (page, name) => page.screenshot({ path: `${folder}/${name}.png`, fullPage: name.endsWith("whole") });

const facts = {};
let page = await open({ colorScheme: "light" });
await picture(page, "light");
facts.all = await visible(page);
facts.light = await background(page);

// The keyboard alone
await page.keyboard.press("Tab");
facts.firstTab = await focused(page);
facts.skipIsSeen = (await (await page.$(".skip")).boundingBox()).x >= 0;
await page.keyboard.press("Enter");
facts.skipped = await focused(page);
await page.keyboard.press("/");
facts.slash = await focused(page);
await page.keyboard.type("FORECAST daily");
facts.found = await visible(page);
facts.status = await page.textContent("#found");
facts.listed = await page.$$eval("nav a", (all) => all.filter((one) => one.offsetParent).map((one) => one.textContent));
await picture(page, "searched");
await page.keyboard.press("ArrowDown");
facts.down = await focused(page);
facts.outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
await page.keyboard.press("ArrowUp");
facts.up = await focused(page);
await page.keyboard.press("Enter");
facts.entered = await page.evaluate(() => location.hash);
await page.keyboard.press("/");
await page.keyboard.type("nothing has this");
facts.none = await visible(page);
facts.nothing = await page.locator("#nothing").waitFor({ timeout: 5000 }).then(() => true, () => false);
await page.keyboard.press("Escape");
facts.cleared = await visible(page);

// A link to what is hidden
await page.keyboard.press("/");
await page.keyboard.type("stations");
await page.evaluate(() => (location.hash = "#tool-get_weather"));
await page.waitForTimeout(100);
facts.revealed = await visible(page);
await page.keyboard.press("Escape");

// A reference leads to its table
await page.evaluate(() => (location.hash = ""));
await page.click("article td.type a");
await page.waitForTimeout(100);
facts.referred = await page.evaluate(() => document.querySelector(".table:target h5 code")?.textContent);

// Colours
await page.click("#theme");
facts.toggled = await background(page);
await page.reload();
facts.remembered = await background(page);
page = await open({ colorScheme: "dark" });
facts.dark = await background(page);
await picture(page, "dark");
await picture(page, "dark-whole");
await page.click("#theme");
facts.toggledBack = await background(page);

// A telephone, and no script
page = await open({ viewport: { width: 360, height: 740 } });
facts.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
await picture(page, "narrow-whole");
page = await open({ javaScriptEnabled: false });
facts.withoutScript = (await page.$$("article")).length;
facts.deadControls = await page.locator("#theme:visible, #search:visible, .copy:visible").count();

await browser.close();
console.log(JSON.stringify({ ...facts, ...said }));
