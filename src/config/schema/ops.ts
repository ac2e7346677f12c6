/** `ops` of `gateway.yaml`: the listener for operators, health checks and Prometheus. */
import { Type } from 'typebox'
import * as s from './primitives.ts'
import { certificatePair } from './server.ts'

/** The cookie of operators' sessions; with TLS it gets the prefix `__Host-`. */
export const opsCookie = 'console_ops'

export const ops = s.section(
  {
    listen: s.listen('Where `/healthz`, `/readyz`, `/metrics` and operators are answered.', {
      default: '127.0.0.1:9090'
    }),
    secret: s.may.secret(
      'What scrapers and commands with `--url` send as `Authorization: Bearer SECRET`: at least ' +
        '32 visible ASCII characters. `console-gateway generate-secret` makes one.',
      { examples: ['${OPS_SECRET}', 'file:/run/secrets/ops-secret'] }
    ),
    socket: s.maybe(
      Type.Union([Type.String(), Type.Literal(false)], {
        minLength: 1,
        description:
          'The folder of the Unix socket for commands on this machine. Empty: the first usual one ' +
          'that can be used. `false`: none, so that commands need `--url`.'
      })
    ),
    hosts: s.list(
      s.text('A host name, without port.', { format: 'x-host' }),
      'More host names of this listener, beside IP addresses and `localhost`. Others get 421, ' +
        'against DNS rebinding.',
      { examples: [['gateway.monitoring.svc']] }
    ),
    role: s.may.text('The role whose users, if they come from `ops.sources`, are operators.'),
    sources: s.list(
      s.text('The name of a credential source.', { names: 'source' }),
      'The credential sources of operators. Empty: those of kind `users-file`. Whoever gives ' +
        'roles in the back-end of an `upstream-login`, or at an OpenID provider, or adds to groups ' +
        'of an LDAP directory, makes operators. A provider needs another redirect URI for them: ' +
        '`/ops/sign-in/NAME/callback` at the address of this listener.'
    ),
    tls: s.optional(
      certificatePair('ops.example.com'),
      'https for this listener: TLS 1.2 and newer.'
    ),
    trustedProxies: s.list(
      s.text('An address or CIDR block.', { format: 'x-addresses' }),
      'Proxies that end TLS in front of this listener. With `ops.role`, an address other than ' +
        'loopback needs this or `ops.tls`.',
      { examples: [['10.0.0.5']] }
    ),
    openMetrics: s.flag('Answer `/metrics` without `ops.secret`, in a private network.')
  },
  'The listener for operators, health checks and Prometheus. Keep it private.'
)
