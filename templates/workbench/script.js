// The workbench: forms generated from schemas, and calls over MCP itself (2026-07-28, Streamable HTTP).
(() => {
  const data = JSON.parse(document.getElementById("workbench-data").textContent);
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const makeButton = (text, onclick, className = "") => make("button", { type: "button", textContent: text, className, onclick });
  // Invisible characters, and characters that change the text direction, are shown as code points.
  const visible = (text) =>
    String(text).replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const makePre = (text) => make("pre", { textContent: visible(text) });
  const makeQuiet = (text) => make("p", { className: "quiet", textContent: visible(text) });
  const setStatus = (text, isGrave) => {
    byId("state").textContent = text;
    byId("state").className = isGrave ? "grave" : "";
  };

  // Values are JSON text, so that numbers keep all typed digits.
  const parse = (text) =>
    JSON.parse(text, (_, value, context) =>
      typeof value === "number" && JSON.rawJSON && context?.source && String(value) !== context.source ? JSON.rawJSON(context.source) : value,
    );
  const show = (value) => JSON.stringify(value, null, 2);
  const object = (pairs) => `{${pairs.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
  const isRaw = (value) => Boolean(JSON.isRawJSON?.(value));
  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !isRaw(value);

  // State that survives reloads: the page reloads after each save.
  const recall = (name) => sessionStorage.getItem(`stubwright-${name}:${data.name}`);
  const remember = (name, text) => sessionStorage.setItem(`stubwright-${name}:${data.name}`, text);

  // Schemas as shown in forms: references are resolved, and `null` is an empty field.
  const findTarget = (reference, root) =>
    decodeURIComponent(reference.slice(1)).split("/").slice(1).map((name) => name.replace(/~1/g, "/").replace(/~0/g, "~")).reduce((value, name) => value?.[name], root);
  const follow = (given, root) => {
    let schema = given;
    for (let steps = 0; steps < 20 && isObject(schema); steps++) {
      const { $ref, anyOf, ...rest } = schema;
      const options = Array.isArray(anyOf) ? anyOf.filter((one) => one?.type !== "null") : [];
      const target = typeof $ref === "string" && $ref.startsWith("#") ? findTarget($ref, root) : options.length === 1 && options[0];
      if (!isObject(target)) break;
      schema = { ...target, ...rest };
    }
    return isObject(schema) ? schema : {};
  };
  const typeOf = (schema) => (Array.isArray(schema.type) ? schema.type.filter((one) => one !== "null").join() : schema.type ?? (schema.properties ? "object" : undefined));
  const choicesOf = (schema) => {
    const options = schema.oneOf ?? schema.anyOf;
    if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => [value, schema.enumNames?.[at]]);
    if ("const" in schema) return [[schema.const]];
    if (Array.isArray(options) && options.length && options.every((one) => isObject(one) && "const" in one)) return options.map((one) => [one.const, one.title]);
    return typeOf(schema) === "boolean" ? [[true], [false]] : null;
  };
  const describeBounds = (schema) =>
    Object.keys(data.bounds).filter((key) => key in schema).map((key) => data.bounds[key].replace("{}", JSON.stringify(schema[key])).replace("{s}", schema[key] === 1 ? "" : "s"));
  const describe = (schema) =>
    [
      schema.description,
      schema.format && `format ${schema.format}`,
      schema.pattern && `matches ${schema.pattern}`,
      ...describeBounds(schema),
      schema.uniqueItems === true && "unique items",
      "default" in schema && `default ${JSON.stringify(schema.default)}`,
    ].filter(Boolean).join(" · ");
  const makeSkeleton = (given, root, depth = 0) => {
    const schema = follow(given, root);
    const offered = choicesOf(schema);
    const options = schema.oneOf ?? schema.anyOf;
    if ("default" in schema) return schema.default;
    if (schema.examples?.length) return schema.examples[0];
    if (offered?.length) return offered[0][0];
    if (Array.isArray(options) && options.length && depth < 6) return makeSkeleton(options[0], root, depth + 1);
    switch (typeOf(schema)) {
      case "object": {
        const names = Object.keys(schema.properties ?? {}).filter((name) => depth < 2 || (depth < 6 && schema.required?.includes(name)));
        return Object.fromEntries(names.map((name) => [name, makeSkeleton(schema.properties[name], root, depth + 1)]));
      }
      case "array":
        return schema.items && depth < 4 ? [makeSkeleton(schema.items, root, depth + 1)] : [];
      case "string":
        return "";
      case "integer":
      case "number":
        return schema.minimum ?? 0;
      default:
        return null;
    }
  };

  // Controls. `read` returns JSON text, or `undefined` if omitted, and throws on invalid input. `fits` returns whether the
  // control can show a value. A control with `node` does its own layout; others have one `input` below a label.
  const makeInput = (tag, { id }, properties) => make(tag, { id, autocomplete: "off", spellcheck: false, ...properties });
  const makeChoice = (field, offered) => {
    const texts = offered.map(([value, title]) => [JSON.stringify(value), title ?? (typeof value === "string" ? value : JSON.stringify(value))]);
    const options = [...(field.isRequired ? [] : [["", "(not set)"]]), ...texts];
    const input = make("select", { id: field.id }, ...options.map(([value, title]) => make("option", { value, textContent: visible(title) })));
    const first = input.value;
    return {
      input,
      isEmpty: () => input.value === first,
      fits: (value) => texts.some(([text]) => text === JSON.stringify(value)),
      read: () => input.value || undefined,
      write: (value) => (input.value = value === undefined ? first : JSON.stringify(value)),
    };
  };
  const makeText = (field) => {
    const isLong = field.schema.maxLength > 200 || /text|body|content|description/.test(field.name);
    const input = makeInput(isLong && !field.suggest ? "textarea" : "input", field);
    const lost = input.tagName === "INPUT" ? /[\r\n]/ : /\r/; // characters that the browser removes from such a field
    return {
      input,
      isEmpty: () => !input.value,
      fits: (value) => typeof value === "string" && !lost.test(value),
      read: () => (input.value || field.isRequired ? JSON.stringify(input.value) : undefined),
      write: (value) => (input.value = value ?? ""),
    };
  };
  const makeNumber = (field) => {
    const input = makeInput("input", field, { inputMode: "decimal" });
    return {
      input,
      isEmpty: () => !input.value.trim(),
      fits: (value) => typeof value === "number" || isRaw(value),
      read: () => {
        const text = input.value.trim();
        if (text && !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new Error(`${text} is not a number`);
        return text || undefined;
      },
      write: (value) => (input.value = value === undefined ? "" : JSON.stringify(value)),
    };
  };
  // The browser's date and time fields are local, without the offset that RFC 3339 requires.
  const two = (number) => String(number).padStart(2, "0");
  const offsetOf = (date) => {
    const minutes = -date.getTimezoneOffset();
    return minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
  };
  const dayOf = (date) => `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const timeOf = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const withSeconds = (text) => (/T?\d\d:\d\d:\d\d/.test(text) ? text : `${text}:00`);
  const MOMENTS = {
    date: { type: "date", toJson: (text) => text, toDate: (text) => new Date(`${text}T00:00`), toField: dayOf },
    time: { type: "time", toJson: (text) => `${withSeconds(text)}${offsetOf(new Date())}`, toDate: (text) => new Date(`${dayOf(new Date())}T${text}`), toField: timeOf },
    "date-time": {
      type: "datetime-local",
      toJson: (text) => `${withSeconds(text)}${offsetOf(new Date(text))}`,
      toDate: (text) => new Date(text),
      toField: (date) => `${dayOf(date)}T${timeOf(date)}`,
    },
  };
  const makeMoment = (field, { type, toJson, toDate, toField }) => {
    const input = makeInput("input", field, { type, ...(type === "date" ? {} : { step: 1 }) });
    return {
      input,
      isEmpty: () => !input.value,
      fits: (value) => typeof value === "string" && !/\.\d*[1-9]/.test(value) && !Number.isNaN(toDate(value).getTime()),
      read: () => {
        if (input.validity.badInput) throw new Error("this is incomplete");
        if (!input.value && field.isRequired) throw new Error("this is required");
        return input.value ? JSON.stringify(toJson(input.value)) : undefined;
      },
      write: (value) => (input.value = value === undefined ? "" : toField(toDate(value))),
    };
  };
  const makeJson = (field) => {
    const input = makeInput("textarea", field, { placeholder: "JSON" });
    const fill = makeButton("Fill in a skeleton", () => {
      input.value = show(makeSkeleton(field.schema, field.root));
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.focus();
    });
    return {
      input,
      after: Object.keys(field.schema).length ? fill : null,
      isEmpty: () => !input.value.trim(),
      fits: () => true,
      read: () => {
        if (!input.value.trim()) return undefined;
        try {
          JSON.parse(input.value);
        } catch (error) {
          throw new Error(`this is not valid JSON: ${error.message}`);
        }
        return input.value;
      },
      write: (value) => (input.value = value === undefined ? "" : show(value)),
    };
  };
  const makeChecks = (field, offered) => {
    const boxes = offered.map(([value, title]) => [JSON.stringify(value), make("input", { type: "checkbox" }), title ?? String(value)]);
    const node = make("div", { className: "checks", role: "group", ariaLabel: field.name }, ...boxes.map(([, input, title]) => make("label", {}, input, ` ${visible(title)}`)));
    const chosen = () => boxes.filter(([, input]) => input.checked).map(([text]) => text);
    const order = (value) => boxes.map(([text]) => text).filter((text) => value.some((one) => JSON.stringify(one) === text));
    return {
      node,
      isEmpty: () => !chosen().length,
      fits: (value) => Array.isArray(value) && JSON.stringify(value) === `[${order(value).join(",")}]`,
      read: () => (chosen().length || field.isRequired ? `[${chosen().join(",")}]` : undefined),
      write: (value) => boxes.forEach(([text, input]) => (input.checked = order(value ?? []).includes(text))),
    };
  };
  const makeGroup = (field) => {
    const required = new Set(field.schema.required ?? []);
    const parts = Object.entries(field.schema.properties).map(([name, one]) =>
      makeField(name, one, field.root, { isRequired: required.has(name), depth: field.depth + 1, suggest: field.suggest }),
    );
    const byName = new Map(parts.map((part) => [part.name, part]));
    const isEmpty = () => parts.every((part) => part.isEmpty());
    return {
      node: make("div", { className: "fields" }, ...parts.map((part) => part.row)),
      isEmpty,
      fits: (value) => isObject(value) && Object.entries(value).every(([name, one]) => byName.get(name)?.fits(one)),
      read: (isSilent) => (isEmpty() && !field.isRequired ? undefined : object(parts.map((part) => [part.name, part.read(isSilent)]).filter(([, text]) => text !== undefined))),
      write: (value) => parts.forEach((part) => part.write(Object.hasOwn(value ?? {}, part.name) ? value[part.name] : undefined)),
    };
  };
  const makeRows = (field) => {
    const list = make("div");
    let rows = [];
    const number = () => {
      for (const [at, { part, remove }] of rows.entries()) {
        part.rename(`${field.name} ${at + 1}`);
        remove.setAttribute("aria-label", `Remove ${field.name} ${at + 1}`);
      }
    };
    const add = () => {
      const part = makeField("", field.schema.items, field.root, { isRequired: true, depth: field.depth + 1 });
      const remove = makeButton("Remove", () => {
        rows = rows.filter((row) => row.part !== part);
        box.remove();
        number();
        more.focus();
        list.dispatchEvent(new Event("input", { bubbles: true }));
      });
      const box = make("div", { className: "row" }, part.row, remove);
      rows.push({ part, remove });
      list.append(box);
      number();
      return part;
    };
    const more = makeButton("Add a row", () => {
      add().row.querySelector("input, select, textarea, button").focus();
      list.dispatchEvent(new Event("input", { bubbles: true }));
    });
    more.setAttribute("aria-label", `Add a row to ${field.name}`);
    const probe = makeField("", field.schema.items, field.root, { isRequired: true, depth: field.depth + 1 });
    return {
      node: make("div", { className: "rows" }, list, more),
      isEmpty: () => !rows.length,
      fits: (value) => Array.isArray(value) && value.every(probe.fits),
      read: (isSilent) => (rows.length || field.isRequired ? `[${rows.map(({ part }) => part.read(isSilent)).filter((text) => text !== undefined).join(",")}]` : undefined),
      write: (value) => {
        rows = [];
        list.replaceChildren();
        for (const one of value ?? []) add().write(one);
      },
    };
  };
  const DEEPEST = 3;
  const makeControl = (field) => {
    const { schema, root, depth } = field;
    const offered = choicesOf(schema);
    const type = typeOf(schema);
    if (offered) return makeChoice(field, offered);
    if (type === "string" && Object.hasOwn(MOMENTS, schema.format ?? "")) return makeMoment(field, MOMENTS[schema.format]);
    if (type === "string") return makeText(field);
    if (type === "integer" || type === "number") return makeNumber(field);
    if (type === "array" && isObject(schema.items)) {
      const items = follow(schema.items, root);
      if (choicesOf(items) && typeOf(items) !== "boolean") return makeChecks(field, choicesOf(items));
      if (depth < DEEPEST) return makeRows(field);
    }
    return type === "object" && isObject(schema.properties) && !schema.oneOf && !schema.anyOf && depth < DEEPEST ? makeGroup(field) : makeJson(field);
  };

  // A field: a control, its label, a hint from the schema, and an error.
  let fields = 0;
  const makeField = (name, given, root, { isRequired = false, depth = 0, suggest = null }) => {
    const field = { id: `field-${++fields}`, name, schema: follow(given, root), root, isRequired, depth, suggest };
    const control = makeControl(field);
    const { input, node } = control;
    const wrong = make("p", { className: "wrong", hidden: true, id: `${field.id}-wrong` });
    const hint = make("p", { className: "quiet", textContent: visible(describe(field.schema)), id: `${field.id}-hint` });
    const title = make("span", { textContent: visible(name) });
    const label = make(node ? "legend" : "label", node ? {} : { htmlFor: field.id }, title);
    if (isRequired && name) label.append(" ", make("span", { className: "required", textContent: "required" }));
    const notes = [...(hint.textContent ? [hint] : []), ...(control.after ? [control.after] : []), wrong];
    const row = node ? make("fieldset", {}, label, ...notes, node) : make("div", { className: "field" }, label, input, ...notes);
    input?.setAttribute("aria-describedby", `${hint.textContent ? `${hint.id} ` : ""}${wrong.id}`);
    if (input && "default" in field.schema && !isRequired) input.placeholder = JSON.stringify(field.schema.default);
    if (input?.tagName === "INPUT" && suggest) suggest(name, input, row);
    return {
      ...control,
      name,
      row,
      rename: (text) => (title.textContent = visible(text)),
      read: (isSilent) => {
        wrong.hidden = true;
        try {
          return control.read(isSilent);
        } catch (error) {
          if (!input || isSilent) throw error; // the error is shown by a part, or not at all
          wrong.textContent = error.message;
          wrong.hidden = false;
          input.focus();
          throw error;
        }
      },
    };
  };

  // A form: fields for a schema's properties, or a single JSON field.
  const makeForm = (given, suggest) => {
    const schema = follow(given, given);
    const hasFields = Object.keys(schema.properties ?? {}).length > 0;
    const group = makeGroup({ schema: { ...schema, properties: schema.properties ?? {} }, root: given, isRequired: true, depth: 0, suggest });
    const whole = makeField("arguments", hasFields || schema.additionalProperties !== false ? schema : {}, given, { depth: DEEPEST });
    const note = make("p", { className: "quiet", role: "status" });
    const box = make("div", {}, group.node, whole.row, note);
    const toggle = makeButton("", () => change(), "toggle");
    let asJson = false;
    const turn = (toJson) => {
      asJson = toJson;
      group.node.hidden = asJson;
      whole.row.hidden = !asJson;
      toggle.textContent = asJson ? "As a form" : "As JSON";
    };
    const read = (isSilent) => (asJson ? (whole.read(isSilent) ?? "{}") : group.read(isSilent));
    const write = (value, toJson = asJson) => {
      turn(toJson || !group.fits(value));
      (asJson ? whole : group).write(value);
      note.textContent = asJson && !toJson ? "The form has no fields for some of these arguments, so they are shown as JSON." : "";
    };
    const change = () => {
      const text = tryTo(() => read());
      if (text !== undefined) write(parse(text), !asJson);
    };
    turn(false);
    return { box, toggle, read, write };
  };
  const tryTo = (read) => {
    try {
      return read();
    } catch {
      return undefined; // the field shows the error
    }
  };
  const rememberForm = (form, key) => {
    const kept = recall(`form:${key}`);
    const value = kept === null ? undefined : tryTo(() => parse(kept));
    if (value !== undefined) form.write(value);
    form.box.addEventListener("input", () => {
      const text = tryTo(() => form.read(true)); // half-typed input is not saved
      if (text !== undefined) remember(`form:${key}`, text);
    });
  };

  // Requests. Headers contain visible ASCII; other text is sent as base64 (basic/transports, "Value Encoding").
  let token = null;
  let next = 1;
  const encode = (value) => {
    const text = String(value);
    if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
    return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
  };
  const mirror = (wanted, values) => {
    const found = wanted.map(({ path, header }) => [`Mcp-Param-${header}`, path.reduce((value, name) => value?.[name], values)]);
    return Object.fromEntries(found.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => [name, encode(value)]));
  };
  // URI templates (RFC 6570, appendix A): the prefix, the separator, and whether the values are named.
  const OPERATORS = { "": ["", ","], "+": ["", ","], "#": ["#", ","], ".": [".", "."], "/": ["/", "/"], ";": [";", ";", ""], "?": ["?", "&", "="], "&": ["&", "&", "="] };
  const encodePart = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const encodeReserved = (text) => encodeURI(text).replace(/%5B/g, "[").replace(/%5D/g, "]").replace(/%25([0-9A-Fa-f]{2})/g, "%$1");
  const expand = (template, values) =>
    template.replace(/\{([+#./;?&]?)([^{}]+)\}/g, (_, operator, names) => {
      const [first, separator, ifEmpty] = OPERATORS[operator];
      const encodeOne = operator === "+" || operator === "#" ? encodeReserved : encodePart;
      const parts = names.split(",").flatMap((name) => {
        const isMany = name.endsWith("*");
        const plain = name.replace(/\*$/, "");
        if (values[plain] === undefined) return [];
        const texts = [values[plain]].flat().map(encodeOne);
        const named = (text) => (ifEmpty === undefined ? text : `${plain}${text ? `=${text}` : ifEmpty}`);
        return isMany ? texts.map(named) : [named(texts.join(","))];
      });
      return parts.length ? first + parts.join(separator) : "";
    });
  const describeRequest = (entry, text) => {
    const values = JSON.parse(text);
    const { method, key } = entry;
    if (method !== "resources/read") return { method, target: key, pairs: [["name", JSON.stringify(key)], ["arguments", text]], headers: mirror(entry.headers, values) };
    const uri = expand(key, values);
    return { method, target: uri, pairs: [["uri", JSON.stringify(uri)]], headers: {} };
  };
  const makeHeaders = ({ method, target, headers }) => ({
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": data.revision,
    "Mcp-Method": method,
    ...(target === undefined ? {} : { "Mcp-Name": encode(target) }),
    ...headers,
  });
  const makeBody = (id, { method, pairs }, meta) =>
    object([["jsonrpc", '"2.0"'], ["id", id], ["method", JSON.stringify(method)], ["params", object([...pairs, ["_meta", JSON.stringify(meta)]])]]);
  const META = {
    "io.modelcontextprotocol/protocolVersion": data.revision,
    "io.modelcontextprotocol/clientInfo": { name: "stubwright dev", version: data.version },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } },
  };
  const request = async (wanted, { signal, trace, hear = () => {} } = {}) => {
    const id = next++;
    const meta = { ...META, "io.modelcontextprotocol/logLevel": "debug", progressToken: id, ...(trace ? { traceparent: `00-${trace}-${trace.slice(16)}-01` } : {}) };
    const response = await fetch(data.url, { method: "POST", body: makeBody(id, wanted, meta), signal, headers: { ...makeHeaders(wanted), ...(token ? { Authorization: `Bearer ${token}` } : {}) } });
    const isStream = (response.headers.get("Content-Type") ?? "").startsWith("text/event-stream");
    return isStream ? readStream(response, id, hear) : readAnswer(response);
  };
  const countBytes = (text) => new TextEncoder().encode(text).length;
  const readAnswer = async (response) => {
    const text = await response.text();
    try {
      return { ...parse(text), bytes: countBytes(text) };
    } catch {
      const challenge = response.headers.get("WWW-Authenticate");
      return { error: { code: `HTTP ${response.status}`, message: `HTTP ${response.status}: ${text}${challenge ? `\n${challenge}` : ""}` } };
    }
  };
  const readStream = async (response, id, hear) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the stream ended before the response");
      bytes += countBytes(value);
      text += value.replace(/\r\n?/g, "\n");
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const lines = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (!lines.length) continue; // a keep-alive
        const message = parse(lines.join("\n"));
        if (message.id === id) return { ...message, bytes };
        hear(message);
      }
    }
  };

  // Suggestions for prompt arguments and template variables (server/utilities/completion).
  const makeSuggest = (entry, readValues) => (name, input, row) => {
    if (!entry.completes.includes(name)) return;
    const wrong = row.querySelector(".wrong");
    const list = row.appendChild(make("datalist", { id: `${input.id}-offered` }));
    const ref = entry.method === "prompts/get" ? { type: "ref/prompt", name: entry.key } : { type: "ref/resource", uri: entry.key };
    let timer = 0;
    const look = async () => {
      const { [name]: value = "", ...others } = readValues();
      const pairs = Object.entries({ ref, argument: { name, value }, context: { arguments: others } }).map(([key, one]) => [key, JSON.stringify(one)]);
      try {
        const { result, error } = await request({ method: "completion/complete", pairs, headers: {} });
        if (error) throw new Error(error.message);
        wrong.hidden = true;
        list.replaceChildren(...result.completion.values.map((one) => make("option", { value: one })));
      } catch (error) {
        wrong.textContent = visible(`no suggestions: ${error.message}`);
        wrong.hidden = false;
      }
    };
    input.setAttribute("list", list.id);
    for (const kind of ["focus", "input"]) {
      input.addEventListener(kind, () => {
        clearTimeout(timer);
        timer = setTimeout(look, 150);
      });
    }
  };

  // Results: content by type, a list of objects as a table, everything else as JSON.
  const makeMedia = (mimeType, base64, text) => {
    const src = `data:${mimeType};base64,${base64}`;
    if (mimeType?.startsWith("image/")) return make("img", { src, alt: `An image, ${mimeType}` });
    return mimeType?.startsWith("audio/") ? make("audio", { src, controls: true }) : makePre(text);
  };
  const showContent = (block) => {
    if (block.type === "text") return makePre(block.text);
    if (block.type === "image" || block.type === "audio") return makeMedia(block.mimeType, block.data, show(block));
    return block.type === "resource" ? showResource(block.resource) : makePre(show(block));
  };
  const showResource = (one) => make("div", {}, make("h3", { textContent: visible(one.uri) }), one.blob === undefined ? makePre(one.text) : makeMedia(one.mimeType, one.blob, show(one)));
  const showMessage = (one) => make("div", {}, make("h3", { textContent: visible(one.role) }), showContent(one.content));
  const isTable = (value) => Array.isArray(value) && value.length > 0 && value.every(isObject);
  const showCell = (value) => (value === undefined ? "" : visible(typeof value === "string" ? value : JSON.stringify(value)));
  const SHOWN = 200; // maximum table rows
  const showTable = (rows) => {
    const some = rows.slice(0, SHOWN);
    const names = [...new Set(some.flatMap(Object.keys))];
    const head = make("tr", {}, ...names.map((name) => make("th", { scope: "col", textContent: visible(name) })));
    const body = some.map((row) => make("tr", {}, ...names.map((name) => make("td", {}, make("div", { textContent: showCell(row[name]) })))));
    const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
    return make("div", { className: "scroll", tabIndex: 0 }, table, ...(rows.length > SHOWN ? [makeQuiet(`and ${rows.length - SHOWN} more rows, in the full response below`)] : []));
  };
  const showValue = (value) => {
    if (isTable(value)) return [showTable(value)];
    if (!isObject(value) || !Object.values(value).some(isTable)) return [makePre(show(value))];
    const [tables, others] = [true, false].map((wanted) => Object.entries(value).filter(([, one]) => isTable(one) === wanted));
    const list = make("dl", {}, ...others.flatMap(([name, one]) => [make("dt", { textContent: visible(name) }), make("dd", { textContent: showCell(one) })]));
    return [...tables.flatMap(([name, rows]) => [make("h3", { textContent: visible(name) }), showTable(rows)]), ...(others.length ? [list] : [])];
  };
  const showAnswer = ({ result, error }) => {
    if (error) return [makePre([error.message, error.data === undefined ? "" : show(error.data)].filter(Boolean).join("\n"))];
    if (result.structuredContent !== undefined) return [...showValue(result.structuredContent), ...(result.content ?? []).filter((block) => block.type !== "text").map(showContent)];
    if (Array.isArray(result.content)) return result.content.map(showContent);
    if (Array.isArray(result.contents)) return result.contents.map(showResource);
    return Array.isArray(result.messages) ? result.messages.map(showMessage) : [makePre(show(result))];
  };

  // A line diff of two results (longest common subsequence).
  const MOST = 4_000_000; // cells in the comparison table
  const compareLines = (before, after) => {
    if (before.length * after.length > MOST) return [...before.map((line) => ["del", line]), ...after.map((line) => ["ins", line])];
    const width = after.length + 1;
    const common = new Uint32Array((before.length + 1) * width);
    for (let i = before.length - 1; i >= 0; i--) {
      for (let j = after.length - 1; j >= 0; j--) {
        common[i * width + j] = before[i] === after[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
      }
    }
    const lines = [];
    for (let i = 0, j = 0; i < before.length || j < after.length; ) {
      if (i < before.length && j < after.length && before[i] === after[j]) lines.push(["span", before[i++], j++]);
      else if (j === after.length || (i < before.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) lines.push(["del", before[i++]]);
      else lines.push(["ins", after[j++]]);
    }
    return lines;
  };
  const SIGNS = { del: "- ", ins: "+ ", span: "  " };
  const showDifference = (before, after) => {
    const linesOf = ({ answer: { result, error } }) => show(error ?? result.structuredContent ?? result).split("\n");
    const lines = compareLines(linesOf(before), linesOf(after));
    if (lines.every(([tag]) => tag === "span")) return makeQuiet("The results are identical.");
    return make("pre", {}, ...lines.map(([tag, line]) => make(tag, { textContent: `${SIGNS[tag]}${visible(line)}${tag === "span" ? "\n" : ""}` })));
  };

  // Calls: the last fifty, newest first. Calls from before the page was loaded are shown from stored results.
  const KEPT = 50;
  const LONGEST_KEPT = 200_000; // the most characters of a result that survives a reload
  let calls = [];
  let shown = null;
  const recallCalls = () => {
    const kept = recall("calls");
    calls = kept === null ? [] : parse(kept).map((call) => ({ ...call, progress: make("div") }));
    if (calls.length) showCall(calls[0]);
  };
  const rememberCalls = () => {
    const kept = calls.filter(({ answer }) => answer && show(answer).length < LONGEST_KEPT).map(({ progress, controller, ...call }) => call);
    for (; kept.length; kept.pop()) {
      try {
        remember("calls", JSON.stringify(kept));
        return;
      } catch (error) {
        if (error.name !== "QuotaExceededError") throw error;
      }
    }
  };
  // A new element takes the focus of the element that it replaces. Until then, the pane has the focus.
  let lost = null;
  document.addEventListener("focusin", () => (lost = null));
  const redraw = (place, ...children) => {
    const pane = place.closest(".pane");
    const at = document.activeElement;
    const wanted = place.contains(at) ? at : at === pane ? lost : null;
    place.replaceChildren(...children);
    if (!wanted) return;
    const isSame = (one) => (wanted.call ? one.call === wanted.call : one.textContent === wanted.textContent);
    const found = place.contains(wanted) ? wanted : all("button, select, summary", place).find(isSame);
    (found ?? pane).focus();
    lost = found ? null : wanted;
  };
  const listCalls = () => {
    calls = calls.slice(0, KEPT);
    redraw(
      byId("history"),
      ...calls.map((call) => {
        const button = Object.assign(makeButton("", () => showCall(call)), { call });
        button.append(make("time", { textContent: call.time }), `${visible(call.key)} `, make("span", { className: call.tone, textContent: call.words }));
        if (call === shown) button.setAttribute("aria-current", "true");
        return make("li", {}, button);
      }),
    );
  };
  const settle = (call, words, tone) => {
    Object.assign(call, { words, tone });
    if (call === shown) showCall(call);
    else listCalls();
  };
  const showCall = (call) => {
    shown = call;
    byId("outcome").textContent = `${visible(call.key)}: ${call.words}`;
    byId("outcome").className = call.tone;
    const { result, error } = call.answer ?? {};
    const raw = call.answer && make("details", { className: "everything" }, make("summary", { textContent: "Full response" }), makePre(show(error ?? result)));
    redraw(byId("shown"), makeCallActions(call), call.progress, ...(call.answer ? [...showAnswer(call.answer), raw] : []));
    listCalls();
  };
  const makeCallActions = (call) => {
    const entry = entryOf(call.id);
    const { nextCursor, next_cursor: cursor = nextCursor } = call.answer?.result?.structuredContent ?? {};
    const again = (more) => {
      const pane = openEntry(entry);
      pane.form.write({ ...parse(call.input), ...more });
      pane.run();
    };
    return make(
      "div",
      { className: "actions" },
      ...(call.controller ? [makeButton("Cancel", () => call.controller.abort())] : []),
      ...(entry && typeof cursor === "string" && entry.schema.properties?.cursor ? [makeButton("Next page", () => again({ cursor }), "main")] : []),
      ...(entry && !call.controller ? [makeButton("Repeat", () => again({}))] : []),
      ...(call.answer && calls.some((one) => one !== call && one.answer) ? [makeCompare(call)] : []),
    );
  };
  const makeCompare = (call) => {
    const others = calls.filter((one) => one !== call && one.answer).sort((one, other) => (other.id === call.id) - (one.id === call.id));
    const names = others.map((one) => `${one.time} ${visible(one.key)}`);
    const select = make("select", { ariaLabel: "Compare with an earlier result" }, ...["Compare with …", ...names].map((text, at) => make("option", { textContent: text, value: at })));
    select.addEventListener("change", () => {
      all(":scope > .difference", byId("shown")).forEach((one) => one.remove());
      const other = others[select.value - 1];
      if (other) select.parentElement.after(Object.assign(showDifference(other, call), { className: "difference" }));
    });
    return select;
  };

  // Questions from a call, shown where its result will be.
  const makeUrl = (url) => make("p", {}, make("a", { href: /^https?:/.test(url) ? url : "#", textContent: visible(url), target: "_blank", rel: "noreferrer noopener" }));
  const listAnswers = (schema, form) => {
    const [[name, only] = [], ...others] = Object.entries(schema?.properties ?? {});
    const isYesOrNo = name !== undefined && !others.length && only?.type === "boolean";
    if (isYesOrNo && name === "confirm") return [["Run it", () => ["accept", { confirm: true }], "main"], ["Don't", () => ["decline"]]];
    if (isYesOrNo) return [["Yes", () => ["accept", { [name]: true }], "main"], ["No", () => ["accept", { [name]: false }]], ["Decline", () => ["decline"]]];
    return [[form ? "Answer" : "Done", () => ["accept", form && JSON.parse(form.read())], "main"], ["Decline", () => ["decline"]], ["Cancel the question", () => ["cancel"]]];
  };
  const ask = (place, { method, params = {} }, signal) =>
    new Promise((resolve, reject) => {
      if (method !== "elicitation/create") {
        resolve({ action: "decline" });
        return;
      }
      const schema = params.requestedSchema;
      const form = schema ? makeForm(schema) : null;
      const box = make("div", { className: "question", role: "group", ariaLabel: "Question" }, make("p", { textContent: visible(params.message ?? "") }));
      const answers = listAnswers(schema, form);
      const end = (words) => box.replaceChildren(makeQuiet(`${params.message ?? ""} — ${words}`));
      const answer = (words, choose) => {
        const chosen = tryTo(choose);
        if (!chosen) return; // the field shows the error
        const [action, content] = chosen;
        end(words);
        byId("answer").focus();
        resolve(content ? { action, content } : { action });
      };
      if (params.url) box.append(makeUrl(params.url));
      if (form && answers[0][0] === "Answer" && Object.keys(schema.properties ?? {}).length) {
        box.append(form.box);
        form.write(Object.fromEntries(Object.entries(schema.properties).filter(([, one]) => isObject(one) && "default" in one).map(([name, one]) => [name, one.default])));
      }
      box.append(make("div", { className: "actions" }, ...answers.map(([words, choose, name]) => makeButton(words, () => answer(words, choose), name))));
      signal.addEventListener("abort", () => {
        end("cancelled");
        reject(signal.reason);
      });
      box.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || !event.target.matches("input")) return;
        event.preventDefault(); // otherwise the key would press the newly focused button
        box.querySelector(".actions > .main").click();
      });
      place.append(box);
      box.querySelector("input, select, textarea, button").focus();
    });

  // One call, from its button to its outcome, including all questions.
  const makeListener = (place) => {
    let bar = null;
    return ({ method, params }) => {
      if (method === "notifications/progress") {
        bar ??= place.appendChild(make("p", {}, make("progress", { ariaLabel: "Progress" }), " ", make("span", { className: "quiet" })));
        const [meter, words] = [bar.querySelector("progress"), bar.querySelector("span")];
        if (params.total) [meter.max, meter.value] = [params.total, params.progress];
        words.textContent = visible([params.total ? `${params.progress} of ${params.total}` : params.progress, params.message].filter((one) => one !== undefined).join(" · "));
      } else if (method === "notifications/message") {
        place.append(makeQuiet(`${params.level}: ${typeof params.data === "string" ? params.data : show(params.data)}`));
      }
    };
  };
  const makeTrace = () => [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
  const converse = async (call, wanted, trace) => {
    const { signal } = call.controller;
    const hear = makeListener(call.progress);
    let spent = 0;
    for (let more = []; ; ) {
      const start = performance.now();
      const answer = await request({ ...wanted, pairs: [...wanted.pairs, ...more] }, { signal, trace, hear });
      spent += performance.now() - start;
      if (answer.result?.resultType !== "input_required") return { answer, spent };
      settle(call, "waiting for your answer", "");
      const answers = [];
      for (const [name, asked] of Object.entries(answer.result.inputRequests ?? {})) answers.push([name, await ask(call.progress, asked, signal)]);
      more = [["inputResponses", JSON.stringify(Object.fromEntries(answers))]];
      if (answer.result.requestState !== undefined) more.push(["requestState", JSON.stringify(answer.result.requestState)]);
      settle(call, "running …", "");
    }
  };
  // A server rejection and a tool failure look the same on the wire; only the call record differs.
  const records = new Map();
  const INTERNAL = -32603; // also if a resource or prompt handler raised an exception
  const REFUSED = ["denied", "limited", "invalid"];
  const expectRecord = (trace) => new Promise((resolve) => records.set(trace, resolve));
  const judge = async ({ result, error }, record) => {
    if (result && !result.isError) return "completed";
    if (error?.code === INTERNAL) return `the server failed (${error.code})`;
    const nothing = new Promise((resolve) => setTimeout(resolve, 1000, {})); // no tool was called, or the log is off
    const { outcome, reason } = await Promise.race([record, nothing]);
    const why = [reason, error?.code].filter((one) => one !== undefined && one !== null).join(", ");
    return `${error || REFUSED.includes(outcome) ? "rejected by the server" : "the tool failed"}${why ? ` (${why})` : ""}`;
  };
  const run = async (entry, input) => {
    const trace = makeTrace();
    const record = expectRecord(trace);
    const call = { id: entry.id, key: entry.key, input, time: new Date().toTimeString().slice(0, 8), progress: make("div"), controller: new AbortController() };
    calls.unshift(call);
    shown = call;
    settle(call, "running …", "");
    try {
      const { answer, spent } = await converse(call, describeRequest(entry, input), trace);
      const ending = await judge(answer, record);
      const size = answer.bytes === undefined ? "" : `, ${answer.bytes.toLocaleString("en")} bytes`;
      call.answer = { result: answer.result, error: answer.error };
      call.controller = null;
      settle(call, `${ending} in ${spent.toFixed(1)} ms${size}`, ending === "completed" ? "calm" : "grave");
      rememberCalls();
    } catch (error) {
      call.controller = null;
      settle(call, error.name === "AbortError" ? "cancelled" : `no response: ${error.message}. See the stubwright dev terminal for details.`, "grave");
    } finally {
      records.delete(trace);
    }
  };

  // The same call in other programs, with a variable for the token, so that no token is pasted into a chat.
  const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
  const toPython = (value) => {
    if (isRaw(value)) return value.rawJSON;
    if (Array.isArray(value)) return `[${value.map(toPython).join(", ")}]`;
    if (isObject(value)) return `{${Object.entries(value).map(([name, one]) => `${toPython(name)}: ${toPython(one)}`).join(", ")}}`;
    if (typeof value === "string") return visible(JSON.stringify(value));
    return value === null ? "None" : value === true ? "True" : value === false ? "False" : String(value);
  };
  const BEARER = "Authorization: Bearer $TOKEN";
  const copyCommand = (entry, input) => {
    const header = data.auth ? ` --header "${BEARER}"` : "";
    return `stubwright call${header} ${quote(data.url)} ${quote(entry.key)} ${quote(JSON.stringify(parse(input)))}`;
  };
  const copyCurl = (entry, input) => {
    const wanted = describeRequest(entry, input);
    const meta = { ...META, "io.modelcontextprotocol/clientCapabilities": {} };
    const headers = Object.entries(makeHeaders(wanted)).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
    return ["curl -sN", quote(data.url), ...headers, ...(data.auth ? [`-H "${BEARER}"`] : []), `--data-raw ${quote(makeBody(1, wanted, meta))}`].join(" \\\n  ");
  };
  const copyPython = (entry, input) => {
    const { method, target } = describeRequest(entry, input);
    const values = toPython(parse(input));
    const call = { "tools/call": `call_tool(${toPython(target)}, ${values})`, "prompts/get": `get_prompt(${toPython(target)}, ${values})`, "resources/read": `read_resource(${toPython(target)})` }[method];
    const url = toPython(data.url);
    if (!data.client) return `import asyncio\nimport mcp\n\nasync def main():\n    async with mcp.Client(${url}) as client:\n        print(await client.${call})\n\nasyncio.run(main())\n`;
    const { module, name } = data.client;
    const headers = data.auth ? ', headers={"Authorization": f"Bearer {os.environ[\'TOKEN\']}"}' : "";
    const imports = `import asyncio\n${data.auth ? "import os\n" : ""}\nfrom ${module} import ${name}\n`;
    return `${imports}\nasync def main():\n    async with ${name}.connect(${url}${headers}) as client:\n        print(await client.raw.${call})\n\nasyncio.run(main())\n`;
  };
  const makeCopies = (entry, form, place) => {
    const formats = [...(entry.method === "tools/call" ? [["stubwright call", copyCommand]] : []), ["curl", copyCurl], ["Python", copyPython]];
    const buttons = formats.map(([name, format]) => {
      const button = makeButton(name, async () => {
        const input = tryTo(() => form.read());
        if (input === undefined) return;
        const text = format(entry, input);
        try {
          await navigator.clipboard.writeText(text);
          place.replaceChildren(makeQuiet(`Copied as ${name}.`));
        } catch {
          place.replaceChildren(makePre(text)); // the browser does not allow copying
        }
      });
      button.setAttribute("aria-label", `Copy as ${name}`);
      return button;
    });
    return make("div", { className: "actions" }, make("span", { className: "quiet", textContent: "Copy as" }), ...buttons);
  };

  // Panes for entries, created when they are first opened.
  const panes = new Map();
  const isWide = matchMedia("(min-width: 1000px)");
  const entryOf = (id) => data.entries.find((entry) => entry.id === id);
  const makePane = (entry) => {
    const form = makeForm(entry.schema, makeSuggest(entry, () => JSON.parse(tryTo(() => form.read(true)) ?? "{}")));
    const button = makeButton(entry.verb, () => start(), `main${entry.destructive ? " grave" : ""}`);
    const filled = entry.examples.map(({ name, input }) => makeButton(`Fill in: ${visible(name)}`, () => form.write(parse(input))));
    const copied = make("div", { role: "status" });
    const box = make("section", { className: "try", ariaLabel: `Try ${entry.key}` }, form.box, make("div", { className: "actions" }, button, form.toggle, ...filled), makeCopies(entry, form, copied), copied);
    const start = async () => {
      const input = button.ariaDisabled === "true" ? undefined : tryTo(() => form.read());
      if (input === undefined) return;
      button.ariaDisabled = "true";
      if (!isWide.matches) byId("answer").scrollIntoView();
      await run(entry, input);
      button.ariaDisabled = "false";
    };
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target.matches("input"))) start();
    });
    rememberForm(form, entry.id);
    byId(entry.id).append(box);
    return { form, run: start, box };
  };
  const openEntry = (entry) => {
    for (const one of all("main > .entry")) one.hidden = one.id !== entry.id;
    for (const link of all("nav a")) {
      if (link.hash === `#${entry.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (!panes.has(entry.id)) panes.set(entry.id, makePane(entry));
    return panes.get(entry.id);
  };
  const route = (isAsked) => {
    const entry = entryOf(decodeURIComponent(location.hash.slice(1))) ?? data.entries[0];
    if (!entry) return;
    const { box } = openEntry(entry);
    if (!isAsked) return;
    if (isWide.matches) box.querySelector(":is(input, select, textarea, button):not([hidden] *)").focus();
    else byId("form").scrollIntoView();
  };

  // Keys in the list: / filters, arrows move, Enter opens, Escape clears the filter.
  const filter = byId("filter");
  const search = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const link of all("nav a")) {
      const text = byId(link.hash.slice(1)).textContent.toLowerCase();
      link.parentElement.hidden = !words.every((word) => text.includes(word));
    }
    for (const section of all("nav section")) section.hidden = !section.querySelector("li:not([hidden])");
    byId("nothing").hidden = all("nav li:not([hidden])").length > 0;
  };
  const clear = () => {
    filter.value = "";
    search();
  };
  const step = (by) => {
    const list = [filter, ...all("nav li:not([hidden]) a")];
    list[Math.min(Math.max(list.indexOf(document.activeElement) + by, 0), list.length - 1)].focus();
  };
  const handleKey = (event) => {
    const at = document.activeElement;
    const isInList = document.querySelector("nav").contains(at);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !at.matches("input, textarea, select")) filter.focus();
    else if (event.key === "Escape" && at.closest(".drawer[open]")) at.closest(".drawer").open = false;
    else if (event.key === "Escape" && isInList) clear();
    else if (event.key === "ArrowDown" && isInList) step(1);
    else if (event.key === "ArrowUp" && isInList) step(-1);
    else if (event.key === "Enter" && at === filter) document.querySelector("nav li:not([hidden]) a")?.click();
    else return;
    event.preventDefault();
  };
  const openLink = (event) => {
    const link = event.target.closest("nav a");
    if (link?.hash !== location.hash || event.ctrlKey || event.metaKey) return;
    event.preventDefault(); // clicking the current link would only move the focus
    route(true);
  };

  // The identity: a token from this run, or from another issuer.
  const who = byId("who");
  const person = byId("person");
  const become = (given, name) => {
    token = given;
    who.textContent = name;
  };
  const identify = async (subject, scopes, claims) => {
    const response = await fetch("/token", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ subject, scopes, claims }) });
    if (!response.ok) throw new Error((await response.text()).trim());
    become((await response.json()).token, `${subject}, ${scopes.join(" ") || "no scope"}`);
  };
  const rowOf = (label, input, hint) => {
    input.id = `person-${label.replace(/\W/g, "-")}`;
    return make("div", { className: "field" }, make("label", { htmlFor: input.id, textContent: label }), input, ...(hint ? [make("p", { className: "quiet", textContent: hint })] : []));
  };
  const wrong = make("p", { className: "wrong", role: "status" });
  if (!data.auth) {
    become(null, "anonymous");
    person.append(make("p", { className: "quiet", textContent: "The manifest has no `auth`: any client that can reach this server can call everything." }));
  } else if (data.auth.issues) {
    const subject = make("input", { value: data.auth.subject });
    const claims = make("textarea", { value: JSON.stringify(data.auth.claims), spellcheck: false });
    const boxes = data.auth.scopes.map((scope) => [scope, make("input", { type: "checkbox", checked: data.auth.chosen.includes(scope) })]);
    const scopes = make("div", { className: "scopes", role: "group" }, ...boxes.map(([scope, input]) => make("label", {}, input, ` ${scope}`)));
    scopes.setAttribute("aria-label", "Scopes");
    const change = make("button", { type: "button", className: "main", textContent: "Use this identity" });
    const now = async () => {
      wrong.textContent = "";
      try {
        await identify(subject.value, boxes.filter(([, input]) => input.checked).map(([scope]) => scope), JSON.parse(claims.value));
      } catch (error) {
        wrong.textContent = error.message;
      }
    };
    change.addEventListener("click", now);
    const row = make("div", { className: "field" }, make("label", { textContent: "scopes" }), scopes);
    person.append(rowOf("subject", subject), row, rowOf("claims", claims, "An object, for example {\"tenant\": \"acme\"}."), make("div", { className: "actions" }, change), wrong);
    now();
  } else {
    become(null, "no token");
    const input = make("input", { type: "password", autocomplete: "off" });
    input.addEventListener("input", () => become(input.value.trim() || null, input.value.trim() ? "the token's subject" : "no token"));
    person.append(rowOf("token", input, `Calls require a token from ${data.auth.issuer}. With --scope, this run issues tokens itself, for the subject that you choose.`));
  }

  // Events during the run.
  const lines = byId("lines");
  const difference = ({ summary, text }) => {
    byId("summary").textContent = summary;
    byId("changes").textContent = text;
  };
  // The fetched difference can be older than the one from the stream.
  let isCurrent = false;
  fetch("/difference").then((response) => response.json()).then((known) => isCurrent || difference(known), () => {}); // if it fails, the stream reports it
  const LONGEST = 1000; // maximum records to show
  const note = (time, text, tone) => {
    const pane = byId("journal");
    const atEnd = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
    const item = make("li", { className: tone ?? "" }, make("time", { textContent: time }), visible(text));
    lines.append(item);
    while (lines.children.length > LONGEST) lines.firstChild.remove();
    if (atEnd) pane.scrollTop = pane.scrollHeight;
    return item;
  };
  const TONES = { ERROR: "grave", CRITICAL: "grave", WARNING: "grave" };
  const heard = {
    log: ({ time, level, text }) => note(time, text, TONES[level]),
    more: ({ text }) => {
      const last = lines.lastElementChild ?? note("", "");
      let folded = last.querySelector("details");
      if (!folded) last.append((folded = make("details", {}, make("summary", { textContent: "more" }), make("pre"))));
      folded.querySelector("pre").textContent += `${visible(text)}\n`;
    },
    print: ({ text }) => note("", text),
    call: ({ time, tool, outcome, reason, duration_ms, trace }) => {
      records.get(trace)?.({ outcome, reason });
      note(time.slice(11, 19), `${tool ?? "a request"}: ${outcome}${reason ? ` (${reason})` : ""} in ${Math.round(duration_ms)} ms`, outcome === "completed" ? "calm" : "grave");
    },
    compared: (changed, isOld) => {
      if (isOld) return;
      isCurrent = true;
      difference(changed);
    },
    saved: ({ digest }, isOld) => {
      if (isOld) return; // this page is from a later save
      setStatus("serving the last save");
      if (digest !== data.digest) location.reload();
    },
    broken: (_, isOld) => isOld || setStatus("the last save has errors (see the terminal); still serving the previous save", true),
    ended: ({ status }, isOld) => isOld || setStatus(`the server exited (${status}); it restarts at the next save`, true),
  };
  const events = new EventSource("/events");
  events.onopen = () => setStatus("serving the last save");
  events.onerror = () => setStatus("stubwright dev has stopped or does not respond", true);
  events.onmessage = (event) => {
    const { kind, ...details } = JSON.parse(event.data);
    heard[kind](details, Number(event.lastEventId) <= data.last);
  };

  filter.addEventListener("input", search);
  document.addEventListener("keydown", handleKey);
  document.addEventListener("click", openLink);
  addEventListener("hashchange", () => route(true));
  recallCalls();
  route(false);
})();
