/** `gateway.yaml`: settings of the installation. A change needs a restart. */
import { Type, type Static } from 'typebox'
import { audit } from './audit.ts'
import { consoleFiles } from './console-files.ts'
import { envelope } from './envelope.ts'
import { identity } from './identity.ts'
import { drain, reload } from './lifecycle.ts'
import { log } from './log.ts'
import { login } from './login.ts'
import { ops } from './ops.ts'
import { presetChoice } from './presets.ts'
import { redis } from './redis.ts'
import { server } from './server.ts'
import { session } from './session.ts'

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
    default: {},
    title: 'gateway.yaml',
    description: 'Settings of the installation. A change needs a restart.'
  }
)

export type GatewayConfig = Static<typeof gatewaySchema>
export type SourceConfig = GatewayConfig['login']['sources'][string]
export type RedisConfig = NonNullable<GatewayConfig['redis']>

/** Whether sessions and counters are stored in Redis. */
export function usesRedis({ redis: settings }: GatewayConfig): boolean {
  return (
    settings !== undefined &&
    (settings.url !== '' || settings.sentinels.length > 0 || settings.cluster.length > 0)
  )
}
