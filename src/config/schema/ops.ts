/** `ops` of `gateway.yaml`: the listener for operators, health checks and Prometheus. */
import { Type } from 'typebox'
import { flag, lifetime, list, listen, secret, section, text, whole } from './primitives.ts'

export const ops = section(
  {
    listen: listen({
      default: '127.0.0.1:9090',
      description:
        'The address and port of the operators’ listener, which answers `/healthz`, `/readyz`, ' +
        '`/metrics` and the commands. Keep it private.'
    }),
    secret: Type.Optional(
      secret({
        description:
          'The secret that requests need as `Authorization: Bearer SECRET`. Only `/healthz`, ' +
          'and `/readyz` without its details, work without it. At least 32 visible ASCII ' +
          'characters; `console-gateway generate-secret` makes one. If empty, each start ' +
          'generates a secret and stores it in a file that only the gateway’s user can read. ' +
          'Commands on the same machine read that file.',
        examples: ['${OPS_SECRET}', 'file:/run/secrets/ops-secret']
      })
    ),
    hosts: list(text({ description: 'A host name, without port.' }), {
      default: [],
      description:
        'Additional host names of this listener. IP addresses, `localhost` and names without a ' +
        'dot always work. A browser that uses another name for `/metrics`, `/readyz` or ' +
        '`/openapi.json` gets 421, as protection against DNS rebinding. Other clients get a ' +
        'response, and the log has one warning a day.',
      examples: [['gateway.monitoring.svc']]
    }),
    openMetrics: flag({
      default: false,
      description:
        'Answer `/metrics` without `ops.secret`. Use it if Prometheus cannot send the secret ' +
        'and the network is private.'
    }),
    strictRedis: flag({
      default: false,
      description:
        '`true`: `/readyz` fails whenever Redis is unavailable. `false`: it fails only until ' +
        'Redis was reached once. All replicas share one Redis, so taking them all out of the ' +
        'load balancer would not help.'
    }),
    requests: section(
      {
        keep: whole({
          default: 10_000,
          maximum: 100_000,
          description:
            'How many requests that did not fail each process remembers. `0`: none. The oldest ' +
            'gives way to the newest.'
        }),
        keepFailed: whole({
          default: 2000,
          maximum: 100_000,
          description:
            'The same for requests that were refused, failed or cut: successful ones do not push ' +
            'them out.'
        })
      },
      'The last requests, for `console-gateway why` and `/ops/api/requests`: route, status, ' +
        'user, times and reasons, without queries, bodies, header values and tokens. They are in ' +
        'the memory of each process, and end with it.'
    ),
    useRecord: lifetime({
      default: '48h',
      description:
        'How long the gateway keeps a record, by hour, of how much callers used of each limit. ' +
        '`console-gateway limits suggest` needs it. With Redis it covers all replicas. `0s`: no ' +
        'record.'
    })
  },
  'The listener for operators, health checks and Prometheus.'
)
