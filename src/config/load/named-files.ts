/** The files that config names: users files of sources, certificates of upstreams. */
import type { GatewayConfig } from '../schema/gateway.ts'
import type { UpstreamConfig } from '../schema/routes.ts'

/** The users files of the file's sources and of the running process's, with the source's index. */
export function usersFiles(
  gateway: GatewayConfig,
  running?: GatewayConfig
): Array<{ file: string; index: number }> {
  // The schema's faults have been reported already.
  return [gateway, ...(running === undefined ? [] : [running])].flatMap(({ login }) => {
    const sources = Array.isArray(login?.sources) ? login.sources : []
    return sources.flatMap((source, index) => {
      const isFile = source?.kind === 'users-file' && typeof source.file === 'string'
      return isFile ? [{ file: source.file, index }] : []
    })
  })
}

/** The PEM files that an upstream names, and the keys that do. */
export function pemFilesOf(
  upstream: UpstreamConfig | undefined
): Array<{ keys: string[]; file: string }> {
  const { ca, tls } = upstream ?? {}
  // The schema's faults have been reported already.
  const named: ReadonlyArray<readonly [keys: string[], file: unknown]> = [
    [['ca'], ca],
    [['tls', 'ca'], tls?.ca],
    [['tls', 'certificate'], tls?.certificate]
  ]
  return named.flatMap(([keys, file]) => (typeof file === 'string' ? [{ keys, file }] : []))
}
