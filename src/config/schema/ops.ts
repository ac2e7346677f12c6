/** `ops` of `gateway.yaml`: the listener for operators, health checks and Prometheus. */
import { Type } from 'typebox'
import { certificatePair } from './certificate-pair.ts'
import { flag, list, listen, maybe, optional, secret, section, text } from './primitives.ts'

/** The cookie of operators' sessions; with TLS it gets the prefix `__Host-`. */
export const opsCookie = 'console_ops'

export const ops = section(
  {
    listen: listen(
      'The address and port of the operators’ listener, which answers `/healthz`, `/readyz`, ' +
        '`/metrics` and the commands. Keep it private.',
      { default: '127.0.0.1:9090' }
    ),
    secret: maybe(
      secret(
        'The secret that requests need as `Authorization: Bearer SECRET`. Only `/healthz`, ' +
          'and `/readyz` without its details, work without it. At least 32 visible ASCII ' +
          'characters; `console-gateway generate-secret` makes one. Needed for scrapers and for ' +
          'commands with `--url`; commands on the same machine use `ops.socket`.',
        { examples: ['${OPS_SECRET}', 'file:/run/secrets/ops-secret'] }
      )
    ),
    socket: maybe(
      Type.Union([Type.String(), Type.Literal(false)], {
        minLength: 1,
        description:
          'The folder of the Unix socket by which commands on this machine ask the gateway. It ' +
          'has to belong to the gateway’s user, and is closed to others; one that is open and ' +
          'holds other files is not used. Empty: the first that can be used of `$RUNTIME_DIRECTORY`, `/run/console-gateway`, ' +
          '`$XDG_RUNTIME_DIR/console-gateway` and `$TMPDIR/console-gateway-UID`. `false`: none, ' +
          'so that commands need `--url`.',
        examples: ['/var/lib/console-gateway/run']
      })
    ),
    hosts: list(
      text('A host name, without port.', { format: 'x-host' }),
      'Additional host names of this listener, as protection against DNS rebinding. IP ' +
        'addresses and `localhost` always work. `/readyz`, `/metrics` and `/openapi.json` also ' +
        'work by any name for clients that are no browser. Other names get 421.',
      { default: [], examples: [['gateway.monitoring.svc']] }
    ),
    role: maybe(
      text(
        'The role whose users may sign in to the operators’ page, if they come from one of ' +
          '`ops.sources`. They may do there whatever the operators’ secret allows. Without it ' +
          'the page asks for `ops.secret`, or opens by the link of `console-gateway ops`.',
        { examples: ['operator'] }
      )
    ),
    sources: list(
      text('The name of a credential source.', { names: 'source' }),
      'The credential sources whose users with `ops.role` are operators. Empty: those of kind ' +
        '`users-file`. Name an `upstream-login` only if whoever gives roles in that back-end may ' +
        'also operate this gateway; `check` warns of it.',
      { default: [], examples: [['users-file']] }
    ),
    tls: optional(
      certificatePair({
        certificate: '/etc/ssl/ops.example.com.pem',
        key: 'file:/etc/ssl/ops.example.com.key'
      }),
      'https for this listener: TLS 1.2 and newer. Certificate and key are read again when their ' +
        'files change or a signal asks for a reload. Adding or removing `tls` needs a restart.'
    ),
    trustedProxies: list(
      text('An address or CIDR block.', { format: 'x-addresses' }),
      'Addresses of proxies that end TLS in front of this listener. Only their ' +
        '`X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host` are used. With `ops.role` ' +
        'an address other than loopback needs this or `ops.tls`.',
      { default: [], examples: [['10.0.0.5']] }
    ),
    openMetrics: flag(
      'Answer `/metrics` without `ops.secret`. Use it if Prometheus cannot send the secret ' +
        'and the network is private.',
      { default: false }
    ),
    strictRedis: flag(
      '`true`: `/readyz` fails whenever Redis is unavailable. `false`: it fails only until ' +
        'Redis was reached once. All replicas share one Redis, so taking them all out of the ' +
        'load balancer would not help.',
      { default: false }
    )
  },
  'The listener for operators, health checks and Prometheus.'
)
