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
      description: 'One Redis server; `rediss://` uses TLS.'
    }),
    sentinels: s.list(s.hostPort('HOST:PORT.'), 'The Sentinels to ask for the primary.'),
    primary: s.text('The name of the primary in the Sentinels’ configuration.', {
      default: 'mymaster'
    }),
    sentinelPassword: s.may.secret('The password of the Sentinels.'),
    cluster: s.list(
      s.hostPort('HOST:PORT.'),
      'Some nodes of a Redis Cluster. All keys are on one shard.'
    ),
    tls: s.flag('Use TLS with a Cluster, or with Sentinels and their servers.'),
    username: s.may.text('The user name of the Redis ACL.'),
    password: s.may.secret('The password of the Redis server.'),
    ca: s.may.pemFile('A PEM file of authorities, in the place of those of the system.'),
    prefix: Type.String({
      pattern: '^[A-Za-z0-9:_-]{0,32}$',
      default: 'cg:',
      expected: 'letters, digits, : _ and -',
      description: 'The prefix of every key, in braces (`{cg}:`): one for each gateway of a Redis.'
    }),
    commandTimeout: s.duration(
      'How long a command may take; then requests with a session get 503. Connecting may ' +
        'take a second at least.',
      { default: '400ms' }
    )
  },
  'The store of sessions and counters. Default: memory, for one process and development only.'
)
