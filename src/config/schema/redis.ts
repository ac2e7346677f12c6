/** `redis` of `gateway.yaml`: the shared store of sessions and counters. */
import { Type } from 'typebox'
import * as s from './primitives.ts'

export const redis = s.optional(
  {
    url: Type.String({
      format: 'x-redis-url',
      default: '',
      pattern: '^$|^rediss?://[^\\s@/]+(:[0-9]+)?(/[0-9]+)?$',
      expected:
        'redis://HOST:PORT or rediss://HOST:PORT, optionally with /DB; ' +
        'user and password stand in their own keys',
      description:
        'One Redis server; `rediss://` uses TLS. Without it, `sentinels` and `cluster`, sessions ' +
        'and counters are kept in memory.'
    }),
    sentinels: s.list(s.hostPort('HOST:PORT.'), 'The Sentinels to ask for the primary.', {
      examples: [['sentinel-1:26379', 'sentinel-2:26379', 'sentinel-3:26379']]
    }),
    primary: s.text('The name of the primary in the Sentinels’ configuration.', {
      default: 'mymaster'
    }),
    sentinelPassword: s.may.secret('The password of the Sentinels.'),
    cluster: s.list(
      s.hostPort('HOST:PORT.'),
      'Some nodes of a Redis Cluster, which name the others. All keys are on one shard.'
    ),
    tls: s.flag('Use TLS with a Cluster, or with the Sentinels and the servers that they name.'),
    username: s.may.text('The user name of the Redis ACL.'),
    password: s.may.secret('The password of the Redis server.'),
    ca: s.may.pemFile(
      'A PEM file with the certificate authority of Redis, if the system does not trust it.'
    ),
    prefix: Type.String({
      pattern: '^[A-Za-z0-9:_-]{0,32}$',
      default: 'cg:',
      expected: 'letters, digits, : _ and -',
      description:
        'The prefix of every key, written in braces (`{cg}:`): one for each gateway of a Redis.'
    }),
    commandTimeout: s.duration(
      'How long a command may take; then requests that need a session get 503. Connecting may ' +
        'take as long, and at least a second.',
      { default: '400ms' }
    )
  },
  'The store of sessions and counters. Without it they are kept in memory, for one process and ' +
    'development only.'
)
