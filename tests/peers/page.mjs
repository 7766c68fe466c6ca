// Opens a page, and prints as JSON the text that it writes, and the errors on its console.
// MODULES is the folder of the Node modules; CHROMIUM the program, or empty for the one among the modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.MODULES}/`);
const { chromium } = require("playwright-core");
const packed = process.env.CHROMIUM ? null : (await import(pathToFileURL(require.resolve("@sparticuz/chromium")))).default;
if (packed) packed.setGraphicsMode = false; // it would draw for WebGL, too, in software
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || (await packed.executablePath()),
  args: packed ? packed.args : ["--no-sandbox"],
});
const page = await browser.newPage();
const errors = [];
page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
page.on("pageerror", (error) => errors.push(error.message));
await page.goto(process.argv[2]);
await page.waitForFunction(() => document.body.textContent.trim() !== "", null, { timeout: 20_000 }).catch((error) => errors.push(error.message));
console.log(JSON.stringify({ text: await page.evaluate(() => document.body.textContent.trim()), errors }));
await browser.close();
