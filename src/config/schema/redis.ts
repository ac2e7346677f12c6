/** `redis` of `gateway.yaml`: the shared store of sessions and counters. */
import { Type } from 'typebox'
import { duration, flag, hostPort, list, optional, secret, text } from './primitives.ts'

export const redis = optional(
  {
    url: Type.String({
      default: '',
      pattern: '^$|^rediss?://[^\\s@/]+(:[0-9]+)?(/[0-9]+)?$',
      expected:
        'redis://HOST:PORT or rediss://HOST:PORT, optionally with /DB; user and password stand in their own keys',
      description:
        'One Redis server; `rediss://` is TLS. With `sentinels` or `cluster` it stays empty. All empty: the embedded store, for one process only.',
      examples: ['redis://redis:6379', '${REDIS_URL:-}']
    }),
    sentinels: list(hostPort({ description: 'HOST:PORT.' }), {
      default: [],
      description: 'Sentinels that know where the primary is; it is followed when it moves.',
      examples: [['sentinel-1:26379', 'sentinel-2:26379', 'sentinel-3:26379']]
    }),
    primary: text({ default: 'mymaster', description: 'What the Sentinels call the primary.' }),
    sentinelPassword: Type.Optional(secret({ description: 'The Sentinels’ own password.' })),
    cluster: list(hostPort({ description: 'HOST:PORT.' }), {
      default: [],
      description: 'Some nodes of a Redis Cluster; the others are found through them.',
      examples: [['redis-1:6379', 'redis-2:6379']]
    }),
    tls: flag({
      default: false,
      description: 'TLS with Sentinels or a Cluster; a single server says `rediss://`.'
    }),
    username: Type.Optional(text({ description: 'The ACL user.' })),
    password: Type.Optional(
      secret({ description: 'The password.', examples: ['file:/run/secrets/redis-password'] })
    ),
    ca: Type.Optional(
      text({
        description:
          'A PEM file with the authority of a `rediss://` server, where the system does not know it.'
      })
    ),
    prefix: Type.String({
      pattern: '^[A-Za-z0-9:_-]{0,32}$',
      default: 'cg:',
      expected: 'letters, digits, : _ and -',
      description: 'What every key begins with.'
    }),
    connectTimeout: duration({ default: '1s', description: 'How long a connection may take.' }),
    commandTimeout: duration({
      default: '400ms',
      description: 'How long a command may take; then what needs a session answers 503.'
    })
  },
  'Where sessions and counters live. Without it they live in this process, which suits one process and development.'
)
