/** `ops` of `gateway.yaml`: the listener for operators and orchestrators. */
import { Type } from 'typebox'
import { flag, lifetime, list, listen, secret, section, text } from './primitives.ts'

export const ops = section(
  {
    listen: listen({
      default: '127.0.0.1:9090',
      description: 'Where `/healthz` and `/readyz` are answered. Keep it private.'
    }),
    secret: Type.Optional(
      secret({
        description:
          'What a request has to carry as `Authorization: Bearer SECRET`, on every address, ' +
          'for everything but `/healthz` and `/readyz` without its details. At least 32 visible ASCII ' +
          'characters; make one with `console-gateway generate-secret`. Empty: made up at each start ' +
          'and left in a file that only the gateway’s user can read, where commands on the same ' +
          'machine find it.',
        examples: ['${OPS_SECRET}', 'file:/run/secrets/ops-secret']
      })
    ),
    hosts: list(text({ description: 'A host name, without port.' }), {
      default: [],
      description:
        'Names of this listener, beside IP addresses, `localhost` and names without a dot. ' +
        '`/metrics`, `/readyz` and `/openapi.json` refuse a browser (421) that calls them by another ' +
        'name, so that no page can read them by giving its own name this address. Whoever else calls ' +
        'by another name is answered, and once a day there is a warning.',
      examples: [['gateway.monitoring.svc']]
    }),
    openMetrics: flag({
      default: false,
      description: 'Whether `/metrics` is answered without `ops.secret`.'
    }),
    strictRedis: flag({
      default: false,
      description:
        'Whether `/readyz` fails whenever Redis is away. By default it fails only before the first contact, since replicas that all leave the load balancer help nobody.'
    }),
    useRecord: lifetime({
      default: '48h',
      description:
        'How long it is known how much of each limit its callers used, by hour, for `console-gateway limits suggest`; with Redis, of all replicas. `0s`: no record is kept.'
    })
  },
  'The listener for operators and orchestrators.'
)
