import type { Config } from '../../config/schema/config.ts'

/**
 * What a reload cannot change stays, whatever the files say. A listener has TLS if it began with
 * it: its pair stays where they have none any more. Connections to Redis keep the authority of the start.
 */
export function keepInstall(running: Config, next: Config): Config {
  const { serverTls, opsTls, redisCa, ...others } = next
  const { server, ops } = running.gateway
  const serverPair = server.tls && (serverTls ?? running.serverTls)
  const opsPair = ops.tls && (opsTls ?? running.opsTls)
  const hasBoth = redisCa !== undefined && running.redisCa !== undefined
  const renewed = hasBoth && redisCa !== running.redisCa ? ['redis.ca'] : []
  return {
    ...others,
    ...(serverPair && { serverTls: serverPair }),
    ...(opsPair && { opsTls: opsPair }),
    ...(running.redisCa !== undefined && { redisCa: running.redisCa }),
    restartNeeded: [...new Set([...others.restartNeeded, ...renewed])]
  }
}
