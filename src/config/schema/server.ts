import { Type } from 'typebox'
import * as s from './primitives.ts'

/** A running listener takes another pair. */
const certificatePair = {
  certificate: s.pemFile('A PEM file: the certificate, then its issuers.', { restart: false }),
  key: s.secret('Its private key, as PEM text without a password.', { restart: false })
}

export const server = s.section('The public listener.', {
  listen: s.hostPort('Where it listens. `0.0.0.0`: everywhere.', { default: '127.0.0.1:8080' }),
  hosts: s.list('The console’s host names, with its port, if any. Empty: all.', s.publicHost(), {
    examples: [['console.example.com'], ['console.example.com:8443']]
  }),
  origins: s.list('Origins that may call (CORS). Another site needs `sameSite: none`.', s.origin()),
  exposeHeaders: s.headerNames('More response headers that pages of `origins` may read.'),
  compress: s.flag('Compress text of more than 1 KiB with br or gzip, if no proxy does.'),
  trustedProxies: s.addresses('The proxies in front. Only their `X-Forwarded-…` are used.'),
  mount: s.may.publicPath('Before all public paths: with `/admin`, `/admin/api/notices`.'),
  tls: s.optional('https by the gateway itself: TLS 1.2 and newer, HTTP/1.1.', {
    ...certificatePair,
    redirect: s.may.hostPort('Where http is redirected to https (308), for `server.hosts`.')
  }),
  requestTimeout: s.duration('How long a body of up to 64 KiB may take; longer ones: 1 KiB/s.', {
    default: '30s'
  }),
  idleTimeout: s.duration('How long a client may read nothing.', { default: '30s' }),
  keepAlive: s.duration('Of unused connections: longer than the balancer’s.', { default: '72s' }),
  maxConnections: s.whole('Connections; an address that is no trusted proxy gets a quarter.', {
    minimum: 16,
    default: 10_000
  })
})

export const consoleFiles = s.optional('Serves the built console; unknown paths: `index.html`.', {
  root: s.text('The folder with the built console.'),
  contentSecurityPolicy: s.text('Of its pages. The default works with every console.', {
    default: "base-uri 'self'; object-src 'none'; frame-ancestors 'none'"
  }),
  signIn: s.may.name('A source of kind `oidc`, where visitors sign in.', { names: 'source' })
})

/** The cookie of operators' sessions; with TLS it gets the prefix `__Host-`. */
export const opsCookie = 'console_ops'

export const ops = s.section('The listener of operators, probes and Prometheus; keep it private.', {
  listen: s.hostPort('Where it listens.', { default: '127.0.0.1:9090' }),
  secret: s.may.signingSecret('The bearer token of scrapers and of commands with `--url`.', {
    pattern: '^[\\x21-\\x7e]{32,}$',
    expected: 'at least 32 visible ASCII characters; `console-gateway generate-secret` makes some'
  }),
  socket: s.maybe(
    s.either(
      'The folder of the Unix socket for commands. `false`: none, so that they need `--url`.',
      [s.anyText(), Type.Literal(false)],
      { minLength: 1, expected: 'a folder, or false' }
    )
  ),
  hosts: s.list('More of its host names, beside addresses and `localhost`. Others: 421.', s.host()),
  role: s.may.text('The role whose users, if they come from `ops.sources`, are operators.'),
  sources: s.list(
    'Default: those of kind `users-file`. Whoever gives roles at another one makes operators. ' +
      'An OpenID provider needs the redirect URI `/ops/sign-in/NAME/callback` here.',
    s.text(undefined, { names: 'source' })
  ),
  tls: s.optional('https for this listener: TLS 1.2 and newer.', certificatePair),
  trustedProxies: s.addresses('Proxies that end TLS. Beyond loopback `role` needs this or `tls`.'),
  openMetrics: s.flag('Answer `/metrics` without `ops.secret`, in a private network.')
})
