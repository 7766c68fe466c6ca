// How near our estimate of tokens is to o200k_base, over saved lists of tools.
//
//     npm install gpt-tokenizer && node bench/tokens.mjs FOLDER
//
// Prints, for some numbers of characters per token, the error of single tools (median, nine in ten) and of all together.
import fs from "node:fs";
import path from "node:path";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const folder = process.argv[2];
const rows = [];
for (const name of fs.readdirSync(folder).filter((each) => each.endsWith(".json"))) {
  for (const tool of JSON.parse(fs.readFileSync(path.join(folder, name), "utf8")).tools) {
    const text = JSON.stringify(tool);
    rows.push([text.length, encode(text).length]);
  }
}
const characters = rows.reduce((sum, row) => sum + row[0], 0);
const tokens = rows.reduce((sum, row) => sum + row[1], 0);
console.log(`${rows.length} tools, ${tokens} tokens, ${(characters / tokens).toFixed(3)} characters per token`);
for (const ratio of [4, 4.2, 4.4, 4.6]) {
  const errors = rows.map((row) => Math.abs(Math.ceil(row[0] / ratio) - row[1]) / row[1]).sort((a, b) => a - b);
  const at = (part) => (100 * errors[Math.floor(errors.length * part)]).toFixed(1);
  const all = (100 * (characters / ratio / tokens - 1)).toFixed(1);
  console.log(`${ratio}: median ${at(0.5)} %, nine in ten ${at(0.9)} %, all together ${all} %`);
}
