/** `gateway.yaml`: settings of the installation. A change needs a restart. */
import { Type, type Static } from 'typebox'
import { audit } from './audit.ts'
import { envelope } from './envelope.ts'
import { login } from './login.ts'
import { ops } from './ops.ts'
import { presetChoice } from './presets.ts'
import * as s from './primitives.ts'
import { redis } from './redis.ts'
import { consoleFiles, server } from './server.ts'
import { session } from './session.ts'

const log = s.section(
  {
    level: s.oneOf(
      ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      'The lowest level that is logged.',
      { default: 'info' }
    ),
    format: s.oneOf(
      ['auto', 'json', 'pretty'],
      '`auto`: readable text on a terminal, otherwise JSON.',
      { default: 'auto' }
    )
  },
  'Logs are written to standard output.'
)

const drain = s.section(
  {
    notice: s.duration(
      'How long requests are still accepted while `/readyz` answers 503: longer than the ' +
        'interval of the health check. `0s`: not at all.',
      { default: '5s', minimum: 0 }
    ),
    grace: s.duration('How long running requests may then take to finish. `0s`: they are ended.', {
      default: '10s',
      minimum: 0
    })
  },
  'How the process stops after SIGTERM.'
)

const reload = s.section(
  {
    watch: s.flag(
      'Reload when a config file, or one that it names, has changed and stays the same for ' +
        'two seconds.',
      { default: true }
    )
  },
  'How changes are taken while the gateway runs.'
)

const identity = s.section(
  {
    id: s.header('The header with the user’s id.', { default: 'x-user-id' }),
    username: s.header('The header with the user name.', { default: 'x-user-name' }),
    roles: s.header('The header with the roles, separated by commas.', { default: 'x-user-roles' }),
    source: s.may.header(
      'The header with the name of the credential source, for sources that may use one id ' +
        'for different people. Default: none.'
    ),
    prefix: s.flag('Put the name of the credential source before the id: `users-file/1`.')
  },
  'Headers that tell upstreams who is signed in, and that no client can send, in any ' +
    'spelling. Values outside ASCII are percent-encoded.'
)

export const gatewaySchema = Type.Object(
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
  {
    additionalProperties: false,
    restart: true,
    default: {},
    title: 'gateway.yaml',
    description: 'Settings of the installation. A change needs a restart.'
  }
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

/** Whether sessions and counters are stored in Redis. */
export function usesRedis({ redis: settings }: GatewayConfig): boolean {
  return (
    settings !== undefined &&
    (settings.url !== '' || settings.sentinels.length > 0 || settings.cluster.length > 0)
  )
}
