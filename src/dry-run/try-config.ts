/** Tries a config before it is used: loads its own code, and runs its expectations. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import type { LoadedConfig } from '../config/schema/config.ts'
import type { Expectation } from '../config/schema/routes.ts'
import { ConfigError, type Fault } from '../config/schema/faults.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import { loadModules, ModulesError } from '../shaping/module.ts'
import type { DryApp, DryResult } from './dry-app.ts'

/** @throws ConfigError for a config that a start and a reload refuse */
export async function assertUsable(config: LoadedConfig): Promise<void> {
  const faults = await tryConfig(config)
  if (faults.length > 0) throw new ConfigError([...config.warnings, ...faults])
}

/** One fault for each module that fails, or else for each expectation that does. */
export async function tryConfig(config: LoadedConfig): Promise<Fault[]> {
  const faults = await moduleFaults(config)
  const cases = Object.entries(config.routes.expect)
  if (faults.length > 0 || cases.length === 0) return faults
  // Only now: it loads the whole app.
  const { createDryApp } = await import('./dry-app.ts')
  const app = await createDryApp(config)
  try {
    for (const [name, expected] of cases) {
      await requestsInBetween()
      app.forget()
      for (const [key, message] of await failures(app, config, name, expected)) {
        faults.push(config.fault(['expect', name, ...key], message))
      }
    }
    return faults
  } finally {
    await app.close()
  }
}

async function moduleFaults(config: LoadedConfig): Promise<Fault[]> {
  try {
    await loadModules(config)
    return []
  } catch (error) {
    if (!(error instanceof ModulesError)) throw error
    return config.named.flatMap(({ what, name, path }) => {
      const reason = what === 'module' ? error.reasons.get(name) : undefined
      return reason === undefined ? [] : [config.fault(path, reason)]
    })
  }
}

type Failure = readonly [key: readonly string[], message: string]

/** Of an expectation: the last of several requests is compared. */
async function failures(
  app: DryApp,
  { gateway }: LoadedConfig,
  name: string,
  expected: Expectation
): Promise<Failure[]> {
  const { request: line, roles, headers, body, times, answer } = expected
  const [method = '', target = ''] = line.split(' ')
  const identity = { id: name, username: name, name, roles: roles ?? [], profile: {} }
  const chosen = Object.entries(headers).map(([field, value]) => [field.toLowerCase(), value])
  try {
    const cookie = roles && (await app.signIn({ source: 'expect', identity }))
    const request = {
      method,
      target,
      address: '198.18.0.1',
      answer,
      headers: {
        host: gateway.server.hosts[0] ?? 'localhost',
        ...(cookie !== undefined && { cookie }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(Object.fromEntries(chosen) as Record<string, string>)
      },
      ...(body !== undefined && { body: JSON.stringify(body) })
    }
    for (let n = 1; n < times; n++) await app.ask(request)
    return mismatches(expected, await app.ask(request))
  } catch (error) {
    // Headers that no client can send, or a response that broke off.
    return [[[], `this request cannot be tried: ${(error as Error).message}`]]
  }
}

function mismatches(expected: Expectation, { status, record, body, calls }: DryResult): Failure[] {
  const code = record?.code
  // Those of parts count only if the route has no upstream of its own.
  const sent = calls.find(({ part }) => part === undefined) ?? calls.at(-1)
  const result = `got ${status}${code === undefined ? '' : ` ${code}`}`
  const target =
    sent === undefined ? `no upstream was called (${result})` : `${sent.upstream} got ${sent.path}`
  const found = [
    ['status', status, `, ${result}`],
    ['code', code, `, ${result}`],
    ['upstream', sent?.upstream, `; ${target}`],
    ['upstreamPath', sent?.path, `; ${target}`]
  ] as const
  const failed = found.flatMap(([key, actual, instead]): Failure[] => {
    const wanted = expected[key]
    return wanted === undefined || wanted === actual
      ? []
      : [[[key], `expected ${wanted}${instead}`]]
  })
  if (expected.response === undefined) return failed
  const difference = differenceIn(bodyOf(body), expected.response)
  return difference === undefined
    ? failed
    : [...failed, [['response'], `${difference} (${result})`]]
}

function bodyOf(text: string): unknown {
  try {
    return parseKeepingDigits(text)
  } catch {
    return text
  }
}

/** The first difference; members that are not expected are none. */
function differenceIn(actual: unknown, expected: unknown, place = ''): string | undefined {
  const at = place === '' ? '' : ` at ${place}`
  const areLists = Array.isArray(expected) && Array.isArray(actual)
  if (!areLists && !(isRecord(expected) && isRecord(actual))) {
    const [written, got] = [JSON.stringify(expected), JSON.stringify(actual) ?? 'nothing']
    return written === got ? undefined : `expected ${written}${at}, got ${got.slice(0, 200)}`
  }
  if (areLists && expected.length !== actual.length) {
    return `expected ${expected.length} items${at}, got ${actual.length}`
  }
  const members = new Map(Object.entries(actual))
  for (const [name, member] of Object.entries(expected)) {
    const inner = areLists ? `${place}[${name}]` : `${place && `${place}.`}${name}`
    const difference = differenceIn(members.get(name), member, inner)
    if (difference !== undefined) return difference
  }
  return undefined
}
