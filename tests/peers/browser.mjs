// Opens a page of `stubwright docs`, uses it as a person would, and prints what happened as JSON.
// MODULES is the folder of the Node modules; CHROMIUM the program, or empty for the one among the modules. PICTURES is a
// folder for pictures of the page, for people to look at; without it there are none, which takes a third of the time.
// The page has tools `get_weather` and `get_forecast`, of which both take a shared schema `Place`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url] = process.argv.slice(2);
const folder = process.env.PICTURES;
const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
const packed = process.env.CHROMIUM
  ? null
  : (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;
if (packed) packed.setGraphicsMode = false; // it would draw for WebGL, too, in software
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || (await packed.executablePath()),
  args: packed ? packed.args : ["--no-sandbox"],
});

const said = { requests: [], console: [], errors: [], violations: [] };
const PHONE = { viewport: { width: 390, height: 740 }, hasTouch: true };
const open = async (options, hash = "") => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.on("request", (request) => said.requests.push(request.url()));
  page.on("console", (message) => said.console.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => said.errors.push(error.message));
  page.on("dialog", (dialog) => said.errors.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  await page.goto(url + hash);
  return page;
};
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const visible = (page) =>
  page.$$eval("article", (all) => all.filter((one) => one.offsetParent).map((one) => one.querySelector(".anchor").id));
const opened = (page) => page.$$eval("article > details[open] > .body > .anchor", (all) => all.map((one) => one.id));
const focused = (page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    return at.id || at.getAttribute("href") || (at.matches("summary") && at.querySelector("h3").textContent) || at.tagName;
  });
const top = (page, selector) => page.$eval(selector, (one) => Math.round(one.getBoundingClientRect().top));
const openAll = (page) => page.$$eval("details", (all) => all.forEach((one) => (one.open = true)));
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
const picture = (page, name) => folder && page.screenshot({ path: `${folder}/${name}.png`, fullPage: name.endsWith("whole") });
const check = async (page, where) => {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  for (const { id, impact, nodes } of violations) {
    said.violations.push(`${where}: ${id} (${impact}) ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }
};
const gone = (page) => page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));

const facts = {};
let page = await open({ colorScheme: "light" });
await picture(page, "light");
facts.all = await visible(page);
facts.light = await background(page);
facts.openedFirst = await opened(page);
await check(page, "closed");

// The keyboard alone
await page.evaluate(() => document.activeElement.blur());
await page.keyboard.press("Tab");
facts.firstTab = await focused(page);
facts.skipIsSeen = (await (await page.$(".skip")).boundingBox()).x >= 0;
await page.keyboard.press("Enter");
await gone(page);
facts.skipped = await focused(page);
await page.keyboard.press("/");
facts.slash = await focused(page);
await page.keyboard.type("FORECAST daily");
facts.found = await visible(page);
facts.status = await page.textContent("#found");
facts.listed = await page.$$eval("#results a", (all) => all.map((one) => one.hash));
facts.marks = await page.$$eval("#results mark", (all) => [...new Set(all.map((one) => one.textContent))]);
facts.highlights = await page.evaluate(() => [...(CSS.highlights.get("found") ?? [])].map(String));
await picture(page, "searched");
await check(page, "searched");
await page.focus("#search");
await page.keyboard.press("ArrowDown");
facts.down = await focused(page);
facts.outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
await page.keyboard.press("ArrowUp");
facts.up = await focused(page);
await page.keyboard.press("Enter");
await gone(page);
facts.entered = [await page.evaluate(() => location.hash), await focused(page), await opened(page)];
facts.spread = await page.evaluate(() => [...(CSS.highlights.get("found") ?? [])].length);
await page.keyboard.press("Enter");
facts.shut = await opened(page);
await page.keyboard.press("Space");
facts.again = await opened(page);
await page.keyboard.press("/");
await page.keyboard.type("nothing has this");
facts.none = await visible(page);
facts.nothing = await page.locator("#nothing").waitFor({ timeout: 5000 }).then(() => true, () => false);
await page.keyboard.press("Escape");
facts.cleared = await visible(page);
facts.unmarked = await page.evaluate(() => CSS.highlights.has("found"));
await page.keyboard.press("/");
await page.keyboard.type("weather");
facts.ranked = await page.$$eval("#results a", (all) => all.map((one) => one.hash));
await page.keyboard.press("Escape");

// A link to what is hidden
await page.keyboard.press("/");
await page.keyboard.type("stations");
await page.evaluate(() => (location.hash = "#tool-get_weather"));
await gone(page);
facts.revealed = await visible(page);
await page.keyboard.press("Escape");

// A reference leads to its schema and shows before what it is; and the schema says who uses it
await page.hover("#tool-get_weather-input a.ref");
await page.locator("#preview").waitFor({ timeout: 5000 });
facts.preview = (await page.innerText("#preview")).split("\n");
await picture(page, "preview");
await check(page, "preview");
await page.keyboard.press("Escape");
facts.previewGone = await page.isHidden("#preview");
await page.mouse.move(0, 0);
await page.focus("#tool-get_weather-input a.ref");
facts.described = await page.getAttribute("#tool-get_weather-input a.ref", "aria-describedby");
await page.keyboard.press("Enter");
await gone(page);
facts.referred = [await focused(page), (await opened(page)).at(-1), await top(page, "article:has(#schema-Place)")];
facts.uses = await page.$$eval("article:has(#schema-Place) .uses a", (all) => all.map((one) => one.hash));
await page.click('.uses a[href="#tool-get_forecast-input"]');
await gone(page);
facts.used = (await opened(page)).includes("tool-get_forecast") && (await top(page, "#tool-get_forecast-input"));

// All open, and the search is still there at the end of the page
await openAll(page);
await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
facts.searchTop = await top(page, "#search");
await check(page, "open");
await page.click("#tools + .all");
facts.closedAll = await opened(page);
await page.click("#tools + .all");
facts.openedAll = await opened(page);

// Code and its button stand beside each other
facts.covered = await page.$$eval(".code", (all) =>
  all.filter((one) => {
    const [code, button] = ["pre", "button"].map((name) => one.querySelector(name).getBoundingClientRect());
    return button.width && button.bottom > code.top && button.top < code.bottom && button.right > code.left;
  }).length,
);
await page.click("#connect ~ .pair button");
facts.said = await page.locator("#said:not(:empty)").textContent({ timeout: 5000 });
facts.copied = await page.evaluate(() => navigator.clipboard.readText());

// Colours
await page.click("#theme");
facts.toggled = await background(page);
await page.reload();
facts.remembered = await background(page);
page = await open({ colorScheme: "dark" });
facts.dark = await background(page);
await picture(page, "dark");
await openAll(page);
await picture(page, "dark-whole");
await check(page, "dark");
await page.click("#theme");
facts.toggledBack = await background(page);

// Paper
page = await open({});
await page.emulateMedia({ media: "print" });
facts.unprinted = await page.$$eval(".body", (all) => all.filter((one) => !one.offsetHeight).length);
facts.printedControls = await page.locator("aside:visible, button:visible, .top:visible").count();
await page.emulateMedia({ media: null });
await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
facts.beforePrint = (await opened(page)).length;
await page.evaluate(() => dispatchEvent(new Event("afterprint")));
facts.afterPrint = (await opened(page)).length;

// A link from elsewhere
page = await open({}, "#tool-get_forecast-output");
facts.deep = [await opened(page), await top(page, "#tool-get_forecast-output")];

// A telephone: the list is a sheet
page = await open(PHONE);
facts.overflow = await overflow(page);
await check(page, "phone");
await openAll(page);
facts.overflowOpen = await overflow(page);
await check(page, "phone, open");
await picture(page, "narrow-whole");
await page.setViewportSize({ width: 390, height: 480 });
await page.evaluate(() => scrollTo(0, 600));
facts.barTop = await top(page, ".top");
await page.$eval(".top .button:last-child", (one) => one.click()); // a real click would first scroll
await gone(page);
facts.sheet = [await page.isVisible("aside"), await page.$eval("main", (main) => main.inert), await focused(page)];
facts.scrolls = await page.innerText(".more");
await picture(page, "sheet");
await check(page, "sheet");
await page.$eval("aside", (sheet) => sheet.scrollTo(0, sheet.scrollHeight));
await gone(page);
facts.scrolled = await page.isVisible(".more");
facts.searchStays = (await top(page, "#search")) >= 0;
await page.click("#back");
await gone(page);
facts.back = [await page.isVisible("aside"), await page.$eval("main", (main) => main.inert), await page.evaluate(() => scrollY)];
await page.click("#seek");
await gone(page);
facts.seek = await focused(page);
await page.keyboard.type("forecast");
await picture(page, "sheet-searched");
await check(page, "sheet, searched");
await page.keyboard.press("Enter");
await gone(page);
facts.chosen = [await page.isVisible("aside"), await focused(page)];
await page.goBack();
facts.listAgain = await page.isVisible("aside");

// No script
page = await open({ javaScriptEnabled: false }, "#tool-get_forecast");
facts.withoutScript = (await page.$$("article")).length;
facts.deadControls = await page.locator("#theme:visible, #search:visible, button:visible").count();
facts.deepWithoutScript = await page.isVisible("#tool-get_forecast-input");
await page.click("summary:has(#tool-get_weather-name)");
facts.clickWithoutScript = await page.isVisible("#tool-get_weather-input");
page = await open({ ...PHONE, javaScriptEnabled: false });
await page.click(".top .button:last-child");
facts.sheetWithoutScript = [await page.isVisible("aside"), await page.isVisible(".more")];
await page.click('nav a[href="#tool-get_weather"]');
facts.leftWithoutScript = [await page.isVisible("aside"), await page.isVisible("#tool-get_weather-input")];

await browser.close();
console.log(JSON.stringify({ ...facts, ...said }));
