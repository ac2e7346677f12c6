import { type Static, Type } from 'typebox'
import { envelope } from './envelope.ts'
import { login } from './login.ts'
import { presetChoice } from './presets.ts'
import * as s from './primitives.ts'
import { consoleFiles, server, ops } from './server.ts'

const howToShow = s.oneOf('The value, its last 4 characters, or a keyed hash of it.', [
  'plain',
  'last4',
  'hash'
])

export const audit = s.optional('Signed lines of sign-ins, changes and acts of operators.', {
  to: s.choice('Into `folder`, or into the log.', ['files', 'stdout']),
  folder: s.text('The folder, which several processes may share.', { default: 'audit' }),
  key: s.oneOrMany<string>(
    'It signs the lines. To rotate it: the new one first.',
    s.signingSecret(),
    {
      expected: 'a reference to at least 32 characters, or a list of them'
    }
  ),
  keep: s.lifetime('Older files are deleted, which the ledger says. `0s`: none.', {
    default: '0s',
    minimum: 0,
    maximum: 3700 * 86_400_000
  }),
  fields: s.named(
    'By route: members of bodies to record. Never name passwords or tokens.',
    s.pairs('Members of the body, as names joined by dots.', howToShow),
    {
      keysName: 'route in the ledger',
      examples: [{ 'orders-write': { 'amount': 'plain', 'customer.iban': 'last4' } }]
    }
  )
})

export type AuditConfig = NonNullable<Static<typeof audit>>
export type HowToShow = AuditConfig['fields'][string][string]

const session = s.section('Sessions: a random id in the browser’s cookie, the data in Redis.', {
  secrets: s.list(
    'They sign cookies and encrypt data. Add a new one as the second, then make it the first.',
    s.signingSecret()
  ),
  idle: s.lifetime('A session ends after this time without use.', { default: '30m' }),
  absolute: s.lifetime('A session ends this long after sign-in in any case.', { default: '8h' }),
  remembered: s.section('Sessions to be remembered. Their cookie outlives the browser.', {
    idle: s.may.lifetime('Default: `session.idle`.'),
    absolute: s.may.lifetime('Also of the cookie. Default: `session.absolute`.')
  }),
  perUser: s.section('How many sessions a user may have.', {
    max: s.count('Sessions of one user at the same time.', { default: 5 }),
    over: s.choice('At one more: end the one unused for longest, or answer 409.', [
      'evict-oldest',
      'refuse'
    ])
  }),
  cookie: s.section('The session cookie: always HttpOnly, with Path=/ and without Domain.', {
    name: s.text('Its name. With `secure` it gets the prefix `__Host-`.', {
      pattern: '^[A-Za-z0-9_-]{1,40}$',
      default: 'console_sid',
      expected: 'letters, digits, _ and -'
    }),
    secure: s.flag('Send it over https only. `false` is for loopback only.', { default: true }),
    sameSite: s.choice('`none`: for a console on another site; the cookie is `Partitioned`.', [
      'strict',
      'lax',
      'none'
    ])
  })
})

const redis = s.optional('The store. Default: memory, for one process and development only.', {
  url: Type.String({
    alsoExpected: s.validUrl,
    default: '',
    pattern: '^$|^rediss?://[^\\s@/]+(:[0-9]+)?(/[0-9]+)?$',
    expected: 'redis(s)://HOST:PORT, with /DB at most; user and password stand in their own keys',
    description: 'One Redis server; `rediss://` uses TLS.'
  }),
  sentinels: s.list('The Sentinels to ask for the primary.', s.hostPort()),
  primary: s.text('The name of the primary at the Sentinels.', { default: 'mymaster' }),
  sentinelPassword: s.may.secret('The password of the Sentinels.'),
  cluster: s.list('Nodes of a Redis Cluster: keys are on one shard.', s.hostPort()),
  tls: s.flag('Use TLS with a Cluster, or with Sentinels and their servers.'),
  username: s.may.text('The user name of the Redis ACL.'),
  password: s.may.secret('The password of the Redis server.'),
  ca: s.authorities(),
  prefix: Type.String({
    pattern: '^[A-Za-z0-9:_-]{0,32}$',
    default: 'cg:',
    expected: 'letters, digits, : _ and -',
    description: 'Of every key, in braces: one for each gateway of a Redis.'
  }),
  commandTimeout: s.duration('How long a command may take; then sessions get 503.', {
    default: '400ms'
  })
})

const log = s.section('Logs are written to standard output.', {
  level: s.oneOf(
    'The lowest level that is logged.',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    { default: 'info' }
  ),
  format: s.choice('`auto`: text on terminals.', ['auto', 'json', 'pretty'])
})

const drain = s.section('How the process stops after SIGTERM.', {
  notice: s.duration('How long requests are taken while `/readyz` is 503. `0s`: not.', {
    default: '5s',
    minimum: 0
  }),
  grace: s.duration('How long running requests may then take. `0s`: they are ended.', {
    default: '10s',
    minimum: 0
  })
})

const reload = s.section('How changes are taken while the gateway runs.', {
  watch: s.flag('Reload two seconds after a change of the files.', { default: true })
})

const identity = s.section('Headers that tell upstreams the user. No client can send them.', {
  id: s.header('The user’s id.', { default: 'x-user-id' }),
  username: s.header('The user name, percent-encoded beyond ASCII.', { default: 'x-user-name' }),
  roles: s.header('The roles, by commas.', { default: 'x-user-roles' }),
  source: s.may.header('The name of the credential source. Default: none.'),
  prefix: s.flag('Put the name of the credential source before the id: `users-file/1`.')
})

export const gatewaySchema = s.closed(
  'Settings of the installation. A change needs a restart.',
  {
    ...presetChoice,
    server,
    ops,
    log,
    audit,
    drain,
    reload,
    redis,
    session,
    login,
    envelope,
    identity,
    console: consoleFiles
  },
  { restart: true }
)

export type GatewayConfig = Static<typeof gatewaySchema>
export type SourceConfig = GatewayConfig['login']['sources'][string]
export type RedisConfig = NonNullable<GatewayConfig['redis']>

/** The names of the sources whose users with `ops.role` are operators. */
export function operatorSources(gateway: Pick<GatewayConfig, 'ops' | 'login'>): string[] {
  const { sources } = gateway.login
  if (gateway.ops.sources.length > 0) return gateway.ops.sources
  return Object.keys(sources).filter(name => sources[name]?.kind === 'users-file')
}

export function usesRedis({ redis: settings }: GatewayConfig): boolean {
  const { url = '', sentinels = [], cluster = [] } = settings ?? {}
  return url !== '' || sentinels.length > 0 || cluster.length > 0
}
