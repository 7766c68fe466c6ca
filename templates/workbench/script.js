// The workbench: forms made from schemas, and calls in the protocol's own words (MCP 2026-07-28, Streamable HTTP).
(() => {
  const data = JSON.parse(document.getElementById("workbench-data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const state = byId("state");
  const tell = (text, isGrave) => {
    state.textContent = text;
    state.className = isGrave ? "grave" : "";
  };

  // Values travel as JSON text, so that a number stays as it was typed, however many digits it has.
  const parse = (text) =>
    JSON.parse(text, (_, value, context) =>
      typeof value === "number" && JSON.rawJSON && context?.source && String(value) !== context.source ? JSON.rawJSON(context.source) : value,
    );
  const show = (value) => JSON.stringify(value, null, 2);
  const object = (pairs) => `{${pairs.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;

  // What a schema asks for, as far as a form can show it. A reference stands for what it leads to.
  const follow = (schema, root) => {
    for (let steps = 0; steps < 20 && schema && typeof schema === "object" && typeof schema.$ref === "string" && schema.$ref.startsWith("#"); steps++) {
      const { $ref, ...beside } = schema;
      const names = decodeURIComponent($ref.slice(1)).split("/").slice(1).map((name) => name.replace(/~1/g, "/").replace(/~0/g, "~"));
      const target = names.reduce((value, name) => value?.[name], root);
      if (!target || typeof target !== "object") break;
      schema = { ...target, ...beside };
    }
    return schema && typeof schema === "object" ? schema : {};
  };
  const choices = (schema) => {
    const options = schema.oneOf ?? schema.anyOf;
    if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => [value, schema.enumNames?.[at]]);
    if ("const" in schema) return [[schema.const]];
    if (Array.isArray(options) && options.length && options.every((one) => one && typeof one === "object" && "const" in one)) {
      return options.map((one) => [one.const, one.title]);
    }
    return null;
  };
  const hints = (schema) =>
    [
      schema.description,
      schema.format && `format ${schema.format}`,
      schema.pattern && `pattern ${schema.pattern}`,
      ...["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"].filter((key) => key in schema).map((key) => `${key} ${schema[key]}`),
      "default" in schema && `default ${JSON.stringify(schema.default)}`,
    ].filter(Boolean).join(" · ");

  // A field reads JSON text, or nothing where it is omitted; it throws what is wrong.
  let fields = 0;
  const makeField = (name, given, root, isRequired) => {
    const schema = follow(given, root);
    const id = `field-${++fields}`;
    const offered = choices(schema);
    const type = Array.isArray(schema.type) ? schema.type.filter((one) => one !== "null").join() : schema.type;
    let input, read, write;
    if (offered || type === "boolean") {
      const texts = (offered ?? [[true], [false]]).map(([value, title]) => [JSON.stringify(value), title ?? (typeof value === "string" ? value : JSON.stringify(value))]);
      input = make("select", { id }, ...(isRequired ? [] : [make("option", { value: "", textContent: "(left out)" })]), ...texts.map(([value, title]) => make("option", { value, textContent: title })));
      read = () => input.value || undefined;
      write = (value) => (input.value = value === undefined ? input.options[0].value : JSON.stringify(value));
    } else if (type === "string") {
      input = make(schema.maxLength > 200 || /text|body|content/.test(name) ? "textarea" : "input", { id, autocomplete: "off", spellcheck: false });
      read = () => (input.value || isRequired ? JSON.stringify(input.value) : undefined);
      write = (value) => (input.value = value ?? "");
    } else if (type === "integer" || type === "number") {
      input = make("input", { id, inputMode: "decimal", autocomplete: "off" });
      read = () => {
        const text = input.value.trim();
        if (!text) return undefined;
        if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new Error(`${text} is not a number`);
        return text;
      };
      write = (value) => (input.value = value === undefined ? "" : JSON.stringify(value));
    } else {
      input = make("textarea", { id, spellcheck: false, placeholder: "JSON" });
      read = () => {
        if (!input.value.trim()) return undefined;
        try {
          JSON.parse(input.value);
        } catch (error) {
          throw new Error(`this is no JSON: ${error.message}`);
        }
        return input.value;
      };
      write = (value) => (input.value = value === undefined ? "" : show(value));
    }
    if ("default" in schema && !isRequired) input.placeholder = JSON.stringify(schema.default);
    const label = make("label", { htmlFor: id, textContent: schema.title && root === null ? schema.title : name });
    if (isRequired) label.append(" ", make("span", { className: "required", textContent: "required" }));
    const wrong = make("p", { className: "wrong", hidden: true });
    const hint = make("p", { className: "quiet", textContent: hints(schema), id: `${id}-hint` });
    if (hint.textContent) input.setAttribute("aria-describedby", hint.id);
    const row = make("div", { className: "field" }, label, input, ...(hint.textContent ? [hint] : []), wrong);
    return {
      name,
      row,
      write,
      read: () => {
        wrong.hidden = true;
        try {
          return read();
        } catch (error) {
          wrong.textContent = error.message;
          wrong.hidden = false;
          input.focus();
          throw error;
        }
      },
    };
  };

  // A form: fields for the properties of a schema, or the whole as JSON, which can say everything.
  const makeForm = (given, key) => {
    const schema = follow(given, given);
    const required = new Set(schema.required ?? []);
    const parts = Object.entries(schema.properties ?? {}).map(([name, one]) => makeField(name, one, given, required.has(name)));
    const names = new Set(parts.map((part) => part.name));
    const whole = makeField("arguments", {}, given, false);
    const rows = make("div", {}, ...parts.map((part) => part.row));
    const box = make("div", {}, rows, whole.row);
    const isPlain = (value) => value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).every((name) => names.has(name));
    let asJson = !parts.length;
    const turn = (toJson) => {
      asJson = toJson;
      rows.hidden = asJson;
      whole.row.hidden = !asJson;
    };
    const read = () => (asJson ? (whole.read() ?? "{}") : object(parts.map((part) => [part.name, part.read()]).filter(([, text]) => text !== undefined)));
    const write = (value) => {
      if (!isPlain(value) || !parts.length) {
        turn(true);
        whole.write(value);
        return;
      }
      turn(asJson);
      for (const part of parts) part.write(value[part.name]);
      whole.write(value);
    };
    const toggle = make("button", { type: "button", hidden: !parts.length });
    const label = () => (toggle.textContent = asJson ? "As a form" : "As JSON");
    toggle.addEventListener("click", () => {
      let value;
      try {
        value = parse(read());
      } catch {
        return; // the field says what is wrong
      }
      if (asJson && !isPlain(value)) {
        tell("These arguments have more than the form has fields for; they stay as JSON.", true);
        return;
      }
      turn(!asJson);
      write(value);
      label();
    });
    turn(asJson);
    label();
    // What was typed outlives the page, which loads again after each save.
    const place = `stubwright-form:${data.name}:${key}`;
    if (key) {
      try {
        const kept = sessionStorage.getItem(place);
        if (kept) write(parse(kept));
      } catch {
        sessionStorage.removeItem(place); // the schema has changed since
      }
      label();
      box.addEventListener("input", () => {
        try {
          sessionStorage.setItem(place, read());
        } catch {
          // half typed; the field says so when it is sent
        }
      });
    }
    return { box, toggle, read, write: (value) => (write(value), label()) };
  };

  // Requests. A header holds visible ASCII; other text is sent in base64 (basic/transports, "Value Encoding").
  let token = null;
  let next = 1;
  const encode = (value) => {
    const text = String(value);
    if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)) return text;
    return `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;
  };
  const makeHeaders = (wanted, argumentsText) => {
    const values = JSON.parse(argumentsText);
    const found = wanted.map(({ path, header }) => [`Mcp-Param-${header}`, path.reduce((value, name) => value?.[name], values)]);
    return Object.fromEntries(found.filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => [name, encode(value)]));
  };
  const request = async (method, target, pairs, headers, signal, hear) => {
    const id = next++;
    const meta = JSON.stringify({
      "io.modelcontextprotocol/protocolVersion": data.revision,
      "io.modelcontextprotocol/clientInfo": { name: "stubwright dev", version: data.version },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {}, url: {} } },
      "io.modelcontextprotocol/logLevel": "debug",
      progressToken: id,
    });
    const body = object([["jsonrpc", '"2.0"'], ["id", id], ["method", JSON.stringify(method)], ["params", object([...pairs, ["_meta", meta]])]]);
    const response = await fetch(data.url, {
      method: "POST",
      body,
      signal,
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
        "MCP-Protocol-Version": data.revision,
        "Mcp-Method": method,
        ...(target === undefined ? {} : { "Mcp-Name": encode(target) }),
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
        ...headers,
      },
    });
    if (!(response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
      const text = await response.text();
      try {
        return { ...parse(text), status: response.status, bytes: text.length };
      } catch {
        const challenge = response.headers.get("WWW-Authenticate");
        return { status: response.status, error: { message: `HTTP ${response.status}: ${text}${challenge ? `\n${challenge}` : ""}` } };
      }
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the stream ended before the answer");
      bytes += value.length;
      text += value.replace(/\r\n?/g, "\n");
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const lines = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (!lines.length) continue; // a sign of life
        const message = parse(lines.join("\n"));
        if (message.id === id) return { ...message, status: response.status, bytes };
        hear(message);
      }
    }
  };

  // One call, from its button to what came of it, with all questions between.
  const showContent = (block) => {
    if (block.type === "text") return make("pre", { textContent: block.text });
    if (block.type === "image") return make("img", { src: `data:${block.mimeType};base64,${block.data}`, alt: `An image, ${block.mimeType}` });
    if (block.type === "audio") return make("audio", { src: `data:${block.mimeType};base64,${block.data}`, controls: true });
    return make("pre", { textContent: show(block) });
  };
  const ask = (place, asked) =>
    new Promise((resolve) => {
      const { method, params = {} } = asked;
      if (method !== "elicitation/create") {
        resolve({ action: "decline" });
        return;
      }
      const form = params.requestedSchema ? makeForm(params.requestedSchema) : null;
      const button = (text, action, name) => make("button", { type: "button", textContent: text, className: name ?? "", onclick: () => answer(action) });
      const box = make("div", { className: "question" }, make("p", { textContent: params.message ?? "" }));
      if (params.url) box.append(make("p", {}, make("a", { href: /^https?:/.test(params.url) ? params.url : "#", textContent: params.url, target: "_blank", rel: "noreferrer noopener" })));
      if (form && Object.keys(params.requestedSchema.properties ?? {}).length) box.append(form.box);
      box.append(make("div", { className: "actions" }, button(form ? "Answer" : "Done", "accept", "main"), button("Decline", "decline"), button("Cancel", "cancel")));
      const answer = (action) => {
        let content;
        try {
          content = action === "accept" && form ? JSON.parse(form.read()) : undefined;
        } catch {
          return; // the field says what is wrong
        }
        box.replaceChildren(make("p", { className: "quiet", textContent: `${params.message ?? ""} — ${action}` }));
        resolve(content === undefined ? { action } : { action, content });
      };
      place.append(box);
      box.querySelector("input, select, textarea, button").focus();
    });
  const run = async (place, button, stop, method, target, pairs, headers) => {
    const outcome = make("p", { role: "status", textContent: "running …" });
    const said = make("div");
    place.replaceChildren(outcome, said);
    const controller = new AbortController();
    stop.hidden = false;
    button.disabled = true;
    stop.onclick = () => controller.abort();
    let bar = null;
    const hear = ({ method: heard, params }) => {
      if (heard === "notifications/progress") {
        bar ??= said.appendChild(make("p", {}, make("progress"), " ", make("span", { className: "quiet" })));
        const [meter, words] = [bar.querySelector("progress"), bar.querySelector("span")];
        if (params.total) [meter.max, meter.value] = [params.total, params.progress];
        words.textContent = [params.total ? `${params.progress} of ${params.total}` : params.progress, params.message].filter((one) => one !== undefined).join(" · ");
      } else if (heard === "notifications/message") {
        said.append(make("p", { className: "quiet", textContent: `${params.level}: ${typeof params.data === "string" ? params.data : show(params.data)}` }));
      }
    };
    let spent = 0;
    let more = [];
    try {
      for (;;) {
        const start = performance.now();
        const answer = await request(method, target, [...pairs, ...more], headers, controller.signal, hear);
        spent += performance.now() - start;
        const { result, error, bytes } = answer;
        if (result?.resultType === "input_required") {
          outcome.textContent = "asks you";
          const answers = [];
          for (const [name, asked] of Object.entries(result.inputRequests ?? {})) answers.push([name, await ask(said, asked)]);
          more = [["inputResponses", JSON.stringify(Object.fromEntries(answers))]];
          if (result.requestState !== undefined) more.push(["requestState", JSON.stringify(result.requestState)]);
          outcome.textContent = "running …";
          continue;
        }
        const isWrong = error || result.isError;
        outcome.className = isWrong ? "grave" : "calm";
        const size = bytes === undefined ? "" : `, ${bytes.toLocaleString("en")} bytes`;
        outcome.textContent = `${error ? "error" : result.isError ? "the tool says that it failed" : "completed"} in ${spent.toFixed(1)} ms${size}`;
        if (error) said.append(make("pre", { textContent: [error.message, error.data === undefined ? "" : show(error.data)].filter(Boolean).join("\n") }));
        else if (result.structuredContent !== undefined) said.append(make("pre", { textContent: show(result.structuredContent) }), ...result.content.filter((block) => block.type !== "text").map(showContent));
        else if (Array.isArray(result.content)) said.append(...result.content.map(showContent));
        else said.append(make("pre", { textContent: show(result) }));
        said.append(make("details", {}, make("summary", { textContent: "Everything that was answered" }), make("pre", { textContent: show(error ?? result) })));
        return;
      }
    } catch (error) {
      outcome.className = "grave";
      outcome.textContent = error.name === "AbortError" ? "cancelled" : `no answer: ${error.message}. The terminal of stubwright dev may say more.`;
    } finally {
      stop.hidden = true;
      button.disabled = false;
    }
  };

  // Beside each entry of the page, what tries it.
  for (const entry of data.entries) {
    const body = byId(entry.id)?.closest(".body");
    if (!body) continue;
    const form = makeForm(entry.schema, entry.id);
    const button = make("button", { type: "button", className: `main${entry.destructive ? " grave" : ""}`, textContent: entry.verb });
    const stop = make("button", { type: "button", textContent: "Stop", hidden: true });
    const place = make("div", { className: "outcome" });
    const filled = entry.examples.map(({ name, input }) => make("button", { type: "button", textContent: `Fill in: ${name}`, onclick: () => form.write(parse(input)) }));
    const box = make("section", { className: "try" }, make("h4", { textContent: "Try it" }), form.box, make("div", { className: "actions" }, button, stop, form.toggle, ...filled), place);
    box.setAttribute("aria-label", `Try ${entry.key}`);
    button.addEventListener("click", () => {
      let text;
      try {
        text = form.read();
      } catch {
        return; // the field says what is wrong
      }
      const values = JSON.parse(text);
      if (entry.method === "resources/read") run(place, button, stop, entry.method, values.uri, [["uri", JSON.stringify(values.uri)]], {});
      else run(place, button, stop, entry.method, entry.key, [["name", JSON.stringify(entry.key)], ["arguments", text]], makeHeaders(entry.headers, text));
    });
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || event.target.matches("input")) && !event.target.closest(".question")) button.click();
    });
    body.insertBefore(box, body.querySelector(":scope > h4"));
  }

  // Who I am: a token of this run, or one from elsewhere.
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
    become(null, "anonymous: the manifest has no `auth`");
    person.append(make("p", { className: "quiet", textContent: "Everybody who reaches this server may call all of it." }));
  } else if (data.auth.issues) {
    const subject = make("input", { value: data.auth.subject });
    const claims = make("textarea", { value: JSON.stringify(data.auth.claims), spellcheck: false });
    const boxes = data.auth.scopes.map((scope) => [scope, make("input", { type: "checkbox", checked: data.auth.chosen.includes(scope) })]);
    const scopes = make("div", { className: "scopes", role: "group" }, ...boxes.map(([scope, input]) => make("label", {}, input, ` ${scope}`)));
    scopes.setAttribute("aria-label", "Scopes");
    const change = make("button", { type: "button", className: "main", textContent: "Be this one" });
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
    person.append(rowOf("subject", subject), row, rowOf("claims", claims, "An object, such as {\"tenant\": \"acme\"}."), make("div", { className: "actions" }, change), wrong);
    now();
  } else {
    become(null, `nobody: calls need a token of ${data.auth.issuer}`);
    const input = make("input", { type: "password", autocomplete: "off" });
    input.addEventListener("input", () => become(input.value.trim() || null, input.value.trim() ? "whom the token is for" : "nobody"));
    person.append(rowOf("token", input, "Or start with --scope: then the run has tokens of its own, for whom you choose."));
  }

  // What happens in the run.
  const lines = byId("lines");
  const difference = ({ summary, text }) => {
    byId("summary").textContent = summary;
    byId("changes").textContent = text;
  };
  // What was fetched may be older than what the stream has told since.
  let isTold = false;
  fetch("/difference").then((response) => response.json()).then((known) => isTold || difference(known), () => {}); // without an answer, the stream says so
  const LONGEST = 1000; // records that are shown
  const note = (time, text, tone) => {
    const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    const item = make("li", { className: tone ?? "" }, make("time", { textContent: time }), text);
    lines.append(item);
    while (lines.children.length > LONGEST) lines.firstChild.remove();
    byId("latest").textContent = text.split("\n")[0];
    if (atEnd) lines.scrollTop = lines.scrollHeight;
    return item;
  };
  const TONES = { ERROR: "grave", CRITICAL: "grave", WARNING: "grave" };
  const heard = {
    log: ({ time, level, text }) => note(time, text, TONES[level]),
    more: ({ text }) => {
      const last = lines.lastElementChild ?? note("", "");
      let folded = last.querySelector("details");
      if (!folded) last.append((folded = make("details", {}, make("summary", { textContent: "more" }), make("pre"))));
      folded.querySelector("pre").textContent += `${text}\n`;
    },
    print: ({ text }) => note("", text),
    call: ({ time, tool, outcome, reason, duration_ms }) => note(time.slice(11, 19), `${tool ?? "a request"}: ${outcome}${reason ? ` (${reason})` : ""} in ${Math.round(duration_ms)} ms`, outcome === "completed" ? "calm" : "grave"),
    compared: (changed, isOld) => {
      if (isOld) return;
      isTold = true;
      difference(changed);
    },
    saved: ({ digest }, isOld) => {
      if (isOld) return; // this page was made of a later save
      tell("serving the last save");
      if (digest !== data.digest) location.reload();
    },
    broken: (_, isOld) => isOld || tell("the last save is not served: the terminal says why; the server of the one before goes on", true),
    ended: ({ status }, isOld) => isOld || tell(`the server has ended (${status}); it is started again at the next save`, true),
  };
  const events = new EventSource("/events");
  events.onopen = () => tell("serving the last save");
  events.onerror = () => tell("stubwright dev has ended, or does not answer", true);
  events.onmessage = (event) => {
    const { kind, ...details } = JSON.parse(event.data);
    heard[kind](details, Number(event.lastEventId) <= data.last);
  };
})();
