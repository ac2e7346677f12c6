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
    secret: s.may.signingSecret(
      'What scrapers and commands with `--url` send as bearer token: 32 characters at least.',
      {
        pattern: '^[\\x21-\\x7e]{32,}$',
        expected:
          '32 or more visible ASCII characters; make one with `console-gateway generate-secret`'
      }
    ),
    socket: s.maybe(
      Type.Union([Type.String(), Type.Literal(false)], {
        minLength: 1,
        description:
          'The folder of the Unix socket for commands. Default: the first usual one. `false`: ' +
          'none, so that commands need `--url`.'
      })
    ),
    hosts: s.list(
      s.text('A host name, without port.', { format: 'x-host' }),
      'More host names of this listener, beside IP addresses and `localhost`. Others get 421.'
    ),
    role: s.may.text('The role whose users, if they come from `ops.sources`, are operators.'),
    sources: s.list(
      s.text('The name of a credential source.', { names: 'source' }),
      'The credential sources of operators. Default: those of kind `users-file`. Whoever ' +
        'gives roles at another one makes operators. An OpenID provider needs the redirect URI ' +
        '`/ops/sign-in/NAME/callback` at this listener.'
    ),
    tls: s.optional(certificatePair, 'https for this listener: TLS 1.2 and newer.'),
    trustedProxies: s.list(
      s.text('An address or CIDR block.', { format: 'x-addresses' }),
      'Proxies that end TLS in front of it. Beyond loopback `role` needs this or `tls`.'
    ),
    openMetrics: s.flag('Answer `/metrics` without `ops.secret`, in a private network.')
  },
  'The listener for operators, health checks and Prometheus. Keep it private.'
)
