// An authorization server that others wrote: the package oidc-provider, with everybody logged in and all scopes granted.
//
//     node issuer.mjs PATH_OF_OIDC_PROVIDER < SETTINGS
//
// The settings are one line of JSON: the port, the keys, the resource that tokens are for, and the scopes that there
// are. Each further line of standard input is another set of keys, from which on it signs with those.

import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(process.argv[2]).href);

function make({ port, resource, scopes, jwks }) {
  const about = { scope: scopes.join(" "), audience: resource, accessTokenFormat: "jwt", accessTokenTTL: 600 };
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    jwks,
    clients: [
      {
        client_id: "machine",
        client_secret: "the-secret-of-the-machine",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
      {
        client_id: "program",
        application_type: "native",
        token_endpoint_auth_method: "none",
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: ["http://127.0.0.1:1/callback"],
      },
    ],
    scopes: ["openid", "offline_access", ...scopes],
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        getResourceServerInfo: (_, asked) => ({ ...about, audience: asked }),
        useGrantedResource: () => true,
      },
    },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    cookies: { keys: ["a key for cookies"] },
  });
  provider.proxy = false;
  return provider;
}

async function agree(provider, request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    return provider.interactionFinished(request, response, { login: { accountId: "alice" } });
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  grant.addOIDCScope(missingOIDCScope.join(" "));
  for (const [resource, scopes] of Object.entries(missingResourceScopes)) {
    grant.addResourceScope(resource, scopes.join(" "));
  }
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

let settings;
let provider;
const server = createServer((request, response) => {
  if (!request.url.startsWith("/interaction/")) {
    return provider.callback()(request, response);
  }
  agree(provider, request, response).catch((error) => response.writeHead(500).end(`${error.stack}`));
});

for await (const line of createInterface({ input: process.stdin })) {
  const first = settings === undefined;
  settings = first ? JSON.parse(line) : { ...settings, jwks: JSON.parse(line) };
  provider = make(settings);
  provider.on("server_error", (_, error) => console.error(error));
  if (first) {
    await new Promise((resolve) => server.listen(settings.port, "127.0.0.1", resolve));
  }
  console.log("ready");
}
process.exit();
