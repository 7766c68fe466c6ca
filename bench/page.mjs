// Opens a page several times, each in a browser of its own, and prints how long its parts took, in milliseconds, as JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const packed = process.env.CHROMIUM
  ? null
  : (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;
const launch = async () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM || (await packed.executablePath()),
    args: packed ? packed.args : ["--no-sandbox"],
  });
const times = { open: [], "of which parsing": [], "first paint": [], "the first letter of a search": [], "another letter": [], "open all": [] };
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())))));
for (let round = 0; round < 6; round++) {
  const browser = await launch();
  const page = await (await browser.newContext({ viewport: { width: 1400, height: 900 } })).newPage();
  await page.goto(url, { waitUntil: "load" });
  const open = await drawn(page); // performance.now() counts from the start of the navigation
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
  const parsed = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domInteractive);
  const letter = async (text) => {
    const start = await page.evaluate((value) => {
      const start = performance.now();
      const input = document.getElementById("search");
      input.value = value;
      input.dispatchEvent(new Event("input"));
      return start;
    }, text);
    return (await drawn(page)) - start;
  };
  const first = await letter("o");
  const second = await letter("ow");
  await letter("");
  const start = await page.evaluate(() => {
    const start = performance.now();
    document.querySelector(".all").click();
    return start;
  });
  const all = (await drawn(page)) - start;
  await browser.close();
  if (round) for (const [name, value] of Object.entries({ open, "of which parsing": parsed, "first paint": paint, "the first letter of a search": first, "another letter": second, "open all": all })) times[name].push(value);
}
console.log(JSON.stringify(times));
