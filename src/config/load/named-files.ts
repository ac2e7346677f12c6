/** The files that config names: users files of sources, certificates of upstreams, own code. */
import { ConfigError } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import type { RoutesConfig, UpstreamConfig } from '../schema/routes.ts'
import { isObject, type Path } from '../schema/visit.ts'
import { readGatewayLayers } from './presets.ts'
import { completeFile, contextOfFolder } from './read-file.ts'
import type { Environment } from './references.ts'

interface UsersFile {
  readonly file: string
  /** The key of the file's config that its faults belong to. */
  readonly place: Path
  /** After the message of a fault. */
  readonly note: string
}

/** The users files of the file's sources, and others that the running process needs. */
export function usersFiles(gateway: GatewayConfig, running?: GatewayConfig): UsersFile[] {
  const named = usersFilesOf(gateway)
  const others = running === undefined ? [] : usersFilesOf(running)
  const note = ': the running process needs it until it is restarted'
  return [
    ...named.map(({ file, index }) => ({
      file,
      place: ['login', 'sources', index, 'file'],
      note: ''
    })),
    ...others
      .filter(({ file }) => !named.some(other => other.file === file))
      .map(({ file }) => ({ file, place: ['login', 'sources'], note }))
  ]
}

/** Faults that hide which users files there are. */
const hidesUsersFiles = /^(|extends|backend|login|login\.sources(\.\d+(\.(file|kind))?)?)$/

/**
 * The users files of a folder, as a start reads them. The rest of config may be faulty: commands
 * must work while an operator mends it.
 * @throws ConfigError when `gateway.yaml` does not say them
 */
export function readUsersFiles(folder: string, environment: Environment): string[] {
  const context = contextOfFolder(folder, environment)
  const layers = readGatewayLayers(context.folder, context)
  const gateway = layers && completeFile(gatewaySchema, layers, context).value
  const sourceFaults = context.faults.filter(({ path }) => hidesUsersFiles.test(path))
  if (gateway === undefined || sourceFaults.length > 0) throw new ConfigError(sourceFaults)
  return usersFilesOf(gateway).map(({ file }) => file)
}

function usersFilesOf({ login }: GatewayConfig): Array<{ file: string; index: number }> {
  // The schema's faults have been reported already.
  const sources = Array.isArray(login?.sources) ? login.sources : []
  return sources.flatMap((source, index) => {
    const isFile = source?.kind === 'users-file' && typeof source.file === 'string'
    return isFile ? [{ file: source.file, index }] : []
  })
}

/** Own code as text, by the name in config: it runs when the config is tried. */
export function readModules(
  routes: RoutesConfig,
  read: (file: string) => string,
  report: (path: Path, message: string) => void
): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const { path, file } of modulesIn(routes)) {
    try {
      texts[file] ??= read(file)
    } catch (error) {
      report(path, unreadable(error))
    }
  }
  return texts
}

/** Each `module`, with its place. */
export function modulesIn({
  shapes,
  upstreams
}: RoutesConfig): Array<{ path: Path; file: string }> {
  // The schema's faults have been reported already.
  const entries = (holder: unknown) => Object.entries(isObject(holder) ? holder : {})
  const named = (path: Path, holder: unknown) => {
    const file = isObject(holder) ? holder['module'] : undefined
    return typeof file === 'string' ? [{ path: [...path, 'module'], file }] : []
  }
  const ofShapes = entries(shapes).flatMap(([name, steps]: [string, unknown]) =>
    Array.isArray(steps) ? steps.flatMap((step, n) => named(['shapes', name, n], step)) : []
  )
  return [
    ...ofShapes,
    ...entries(upstreams).flatMap(([name, upstream]) => named(['upstreams', name], upstream))
  ]
}

export function unreadable(error: unknown): string {
  const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message
  return `the file cannot be read (${reason})`
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
