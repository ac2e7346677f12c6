/** Config files → parsed → references filled → defaults → validated → checked → frozen; the only reader of config files. */
import { relative, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Static, TSchema } from 'typebox'
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document } from 'yaml'
import { checkConfig } from '../check/check.ts'
import { checkUsers } from '../check/users.ts'
import { schemaFile } from '../schema/contracts.ts'
import { loadContracts } from '../check/contracts.ts'
import { installDifferences } from './differences.ts'
import { ConfigError, type Fault, schemaFaults } from '../schema/faults.ts'
import { gatewaySchema, type GatewayConfig } from '../schema/gateway.ts'
import { createInputs, type Inputs } from './inputs.ts'
import { rawNumber } from '../../json/values.ts'
import { limitsSchema } from '../schema/limits.ts'
import { aliasFault, syntaxFaults } from './yaml-faults.ts'
import { toBytes, toMilliseconds } from '../schema/primitives.ts'
import { type Environment, resolveReferences } from './references.ts'
import { routesSchema, type RoutesConfig } from '../schema/routes.ts'
import { usersSchema, type UsersConfig } from '../schema/users.ts'
import { asNode, isObject, type Node, type Path, visit } from '../schema/visit.ts'
import type { LoadedConfig, ConfigFile } from '../schema/config.ts'

interface Options {
  /** The install config of the process that is to run this: it stands in the place of the file's, which has to be sound all the same. */
  readonly running?: GatewayConfig
  /** In the place of the folder's `limits.yaml`. */
  readonly limitsFile?: string
  /** Gets to know every file that is read. */
  readonly inputs?: Inputs
}

/** @throws ConfigError with every fault at once. */
export function loadConfig(
  folder: string,
  environment: Environment,
  { running, limitsFile = 'limits.yaml', inputs = createInputs() }: Options = {}
): LoadedConfig {
  const faults: Fault[] = []
  const absolute = resolve(folder)
  const read = <T extends TSchema>(name: string, schema: T) =>
    readFile(absolute, name, schema, { environment, inputs, faults })
  const gateway = read('gateway.yaml', gatewaySchema)
  const routes = read('routes.yaml', routesSchema)
  const limits = read(limitsFile, limitsSchema)
  if (gateway === undefined || routes === undefined || limits === undefined)
    throw new ConfigError(faults)
  const users: Record<string, UsersConfig> = {}
  for (const { file, index } of usersFiles(gateway.value, running)) {
    if (Object.hasOwn(users, file)) continue
    const namedBy = (message: string) => {
      faults.push(gateway.fault(['login', 'sources', index, 'file'], message, 'fault'))
    }
    const found = readFile(absolute, file, usersSchema, { environment, inputs, faults, namedBy })
    if (found === undefined) continue
    users[file] = found.value
    checkUsers(found.value, (path, message) => {
      faults.push(found.fault(path, message, 'fault'))
    })
  }
  const contracts = loadContracts(routes.value, {
    read: file => {
      const found = read(file, schemaFile)
      return (
        found && {
          value: found.value,
          report: (path, message) => {
            faults.push(found.fault(path, message, 'fault'))
          }
        }
      )
    },
    report: (path, message) => {
      faults.push(routes.fault(path, message, 'fault'))
    }
  })
  const files = { gateway, routes, limits }
  const authorities = readAuthorities(
    routes.value,
    file => inputs.read(resolve(absolute, file)),
    (path, message) => faults.push(files.routes.fault(path, message, 'fault'))
  )
  const config = {
    folder: absolute,
    gateway: gateway.value,
    routes: routes.value,
    limits: limits.value,
    users,
    contracts,
    authorities
  }
  const unfit = [...faults]
  const check = (checked: typeof config, note: string) =>
    checkConfig(
      checked,
      (file, path, message, how = 'fault') => {
        const { severity = 'fault', also } = typeof how === 'string' ? { severity: how } : how
        const line = also === undefined ? undefined : files[file].lineOf(also)
        const otherPlace = line === undefined ? '' : ` (line ${line})`
        const found = files[file].fault(
          path,
          message + otherPlace + (file === 'gateway' ? note : ''),
          severity
        )
        // What hangs on a value that does not even fit its schema has been said already.
        if (
          !unfit.some(
            other => other.file === found.file && `${found.path}.`.startsWith(`${other.path}.`)
          ) &&
          !faults.some(other => isDeepStrictEqual(other, found))
        )
          faults.push(found)
      },
      unfit.length > 0
    )
  check(config, '')
  const restartNeeded =
    running === undefined || unfit.length > 0 ? [] : installDifferences(running, gateway.value)
  if (running !== undefined && restartNeeded.length > 0)
    check({ ...config, gateway: running }, ' (as it runs; the file’s own change needs a restart)')
  const warnings = faults.filter(({ severity }) => severity === 'warning')
  if (warnings.length < faults.length) throw new ConfigError(faults)
  return deepFreeze({
    ...config,
    inputs: inputs.digests(),
    gateway: running ?? gateway.value,
    restartNeeded,
    warnings,
    fault: (file: ConfigFile, path: Path, message: string) =>
      files[file].fault(path, message, 'fault')
  })
}

/** The users files that sources of the file, or of the running process, name, and where. */
function usersFiles(
  gateway: GatewayConfig,
  running?: GatewayConfig
): Array<{ file: string; index: number }> {
  // The schema's faults are told elsewhere.
  return [gateway, ...(running === undefined ? [] : [running])].flatMap(({ login }) => {
    const sources = Array.isArray(login?.sources) ? login.sources : []
    return sources.flatMap((source, index) => {
      const isFile = source?.kind === 'users-file' && typeof source.file === 'string'
      return isFile ? [{ file: source.file, index }] : []
    })
  })
}

function readAuthorities(
  { upstreams }: RoutesConfig,
  read: (file: string) => string,
  report: (path: Path, message: string) => void
): Record<string, string> {
  const found: Record<string, string> = {}
  // The schema's faults are told elsewhere.
  for (const [name, upstream] of Object.entries(isObject(upstreams) ? upstreams : {})) {
    if (typeof upstream?.ca !== 'string') continue
    try {
      found[upstream.ca] = read(upstream.ca)
    } catch (error) {
      report(
        ['upstreams', name, 'ca'],
        `the file cannot be read (${(error as NodeJS.ErrnoException).code ?? (error as Error).message})`
      )
    }
  }
  return found
}

interface LoadedFile<T> {
  readonly value: T
  readonly fault: (path: Path, message: string, severity: Fault['severity']) => Fault
  /** The line of what is at a path; undefined where the file does not hold it, as with a default. */
  readonly lineOf: (path: Path) => number | undefined
}

interface Reading {
  readonly environment: Environment
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** Told when the file cannot be read, where another file names it: that is the line to mend. */
  readonly namedBy?: (message: string) => void
}

/** Reads one config file, without what other files say of it. */
export function readFile<T extends TSchema>(
  folder: string,
  name: string,
  schema: T,
  reading: Reading
): LoadedFile<Static<T>> | undefined {
  const { environment, inputs, faults, namedBy } = reading
  const file = resolve(folder, name)
  const shown = relative(process.cwd(), file).startsWith('..')
    ? file
    : relative(process.cwd(), file)
  const whole = (message: string) => {
    faults.push({ file: shown, line: 0, path: '', message, severity: 'fault' })
    return undefined
  }
  let source: string
  try {
    source = inputs.read(file)
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason'
    if (error instanceof RangeError) return whole(error.message)
    if (namedBy === undefined) return whole(`the file cannot be read (${reason})`)
    namedBy(`the file "${name}" cannot be read (${reason})`)
    return undefined
  }
  const lines = new LineCounter()
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    intAsBigInt: true
  })
  for (const { line, message } of syntaxFaults(source, document, lines)) {
    faults.push({ file: shown, line, path: '', message, severity: 'fault' })
  }
  if (document.errors.length > 0) return undefined
  let value: unknown
  try {
    value = unshared(document.toJS({ maxAliasCount: 50 }), [])
  } catch (error) {
    return whole(aliasFault(error))
  }
  if (!isObject(value))
    return whole('expected a mapping; the file is empty or holds something else')
  const fault = (path: Path, message: string, severity: Fault['severity']): Fault => ({
    file: shown,
    line: linesAlong(document, lines, path).at(-1) ?? 1,
    path: path.join('.'),
    message,
    severity
  })
  const report = (path: Path, message: string) => {
    faults.push(fault(path, message, 'fault'))
  }
  dropEmptySections(asNode(schema), value)
  resolveReferences(asNode(schema), value, { environment, folder, read: inputs.read, report })
  fillDefaults(asNode(schema), value)
  schemaFaults(asNode(schema), value, report)
  const lineOf = (path: Path) => linesAlong(document, lines, path)[path.length - 1]
  return { value: convertUnits(asNode(schema), value) as Static<T>, fault, lineOf }
}

/**
 * A value of its own at each place: an alias is one and the same in several, so what is put into
 * one would be put into all. Examples are answers, whose ids keep their digits.
 */
function unshared(value: unknown, above: readonly unknown[], isExample = false): unknown {
  if (typeof value === 'bigint') return isExample ? exactNumber(value) : Number(value)
  if (typeof value !== 'object' || value === null) return value
  if (above.includes(value)) throw new Error('an alias holds itself')
  const here = [...above, value]
  if (Array.isArray(value)) return value.map(item => unshared(item, here, isExample))
  const isInExample = (key: string) => isExample || (above.length === 0 && key === 'examples')
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [key, unshared(member, here, isInExample(key))])
  )
}

function exactNumber(value: bigint): unknown {
  return Number.isSafeInteger(Number(value)) ? Number(value) : rawNumber(String(value))
}

/** `server:` with nothing below it is null in YAML; people mean "nothing set". */
function dropEmptySections(schema: Node, value: unknown): void {
  visit(schema, value, (at, found) => {
    if (!isObject(found) || at.properties === undefined) return
    for (const key of Object.keys(found))
      if (found[key] === null && Object.hasOwn(at.properties, key)) delete found[key]
  })
}

function fillDefaults(schema: Node, value: unknown): void {
  visit(schema, value, (at, found, _, put) => {
    if (Array.isArray(found) && found.includes(undefined))
      put(found.filter(item => item !== undefined))
    if (!isObject(found)) return
    for (const [key, member] of Object.entries(at.properties ?? {}))
      if (found[key] === undefined && member.default !== undefined)
        found[key] = structuredClone(member.default)
  })
}

function convertUnits(schema: Node, value: unknown): unknown {
  return visit(schema, value, (at, found, _, put) => {
    if (at.format === 'x-duration') put(toMilliseconds(String(found)))
    if (at.format === 'x-size') put(toBytes(String(found)))
  })
}

/** The lines of the keys and items along a path, as far as the file holds them. */
function linesAlong(document: Document, lines: LineCounter, path: Path): number[] {
  const found: number[] = []
  let node: unknown = document.contents
  for (const step of path) {
    // A key may be a number in YAML.
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      : undefined
    const item = isSeq(node) ? node.items[Number(step)] : undefined
    const { range } = (pair?.key ?? item ?? {}) as { range?: [number, number, number] }
    if (range === undefined) break
    found.push(lines.linePos(range[0]).line)
    node = pair?.value ?? item
  }
  return found
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const member of Object.values(value)) deepFreeze(member)
  }
  return value
}
