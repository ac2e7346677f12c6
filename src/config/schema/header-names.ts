/** Bound to one connection (RFC 9110 §7.6.1), or only meant for the gateway itself. */
export const connectionBound: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings'
])

export const builtByGateway: ReadonlySet<string> = new Set([
  'host',
  'cookie',
  'authorization',
  'content-length',
  'x-request-id',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host'
])

const families = [
  // The client's address, the public address, another path or method, a proxy to use
  // (CGI's HTTP_PROXY).
  'forwarded$',
  'proxy$',
  'x-forwarded',
  'x-real-ip$',
  '(?:x-)?client-ip$',
  'x-cluster-client-ip$',
  'true-client-ip$',
  'cf-connecting-ip$',
  'x-original-',
  'x-rewrite-url$',
  'x-http-method',
  'x-method-override$',
  '(?:x-)?remote-',
  // Identity, by the names that back-ends and their frameworks use.
  '(?:x-)?(?:ssl|ssl-client|client-cert|client-verify)(?:-|$)',
  '(?:x-)?(?:user(?!-agent$)|users|username|userid|role|roles|group|groups)(?:-|$)',
  '(?:x-)?(?:identity|principal|authenticated|account|admin)(?:-|$)',
  'x-(?:auth|authorization|authenticated|webauth|token-subject|envoy|internal)(?:-|$)',
  // Identity, by the names of particular proxies: Kubernetes, Google, Azure, AWS, Cloudflare, Kong,
  // Authentik, Grafana's tenants, Next.js' middleware, Vouch, Pomerium.
  'impersonate-',
  'x-goog-authenticated-',
  'x-goog-iap-',
  'x-ms-client-principal',
  'x-amzn-oidc-',
  'cf-access-',
  'x-consumer-',
  'x-authentik-',
  'x-scope-orgid$',
  'x-middleware-',
  'x-vouch-',
  'x-pomerium-'
]

/** Back-ends take these for a trusted proxy’s. Names beyond letters, digits and `-` never pass. */
export const refusedFamilies = new RegExp(`^(?:${families.join('|')})`)
