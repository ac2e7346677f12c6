/** Runs the expectations of `routes.yaml` through the real app, without sockets. */
import type { LoadedConfig } from '../config/schema/config.ts'
import type { Expectation } from '../config/schema/expectations.ts'
import type { Fault } from '../config/schema/faults.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { createDryApp, type DryApp, type DryResult, withoutMaintenance } from './dry-app.ts'

/** One fault for each expectation that fails. */
export async function expectationFaults(
  config: LoadedConfig,
  yieldToRequests: () => Promise<void>
): Promise<Fault[]> {
  let answer: unknown
  const app = await createDryApp(withoutMaintenance(config), {
    upstreams: { answer: () => answer }
  })
  try {
    const faults: Fault[] = []
    for (const [index, [name, expected]] of Object.entries(config.routes.expect).entries()) {
      await yieldToRequests()
      app.forget()
      answer = expected.answer
      try {
        const result = await resultOf(app, { config, name, expected, index })
        for (const [key, message] of mismatches(expected, result)) {
          faults.push(config.fault('routes', ['expect', name, key], message))
        }
      } catch (error) {
        // Headers that no client can send, or a response that broke off.
        const reason = `this request cannot be tried: ${(error as Error).message}`
        faults.push(config.fault('routes', ['expect', name], reason))
      }
    }
    return faults
  } finally {
    await app.close()
  }
}

interface Case {
  readonly config: LoadedConfig
  readonly name: string
  readonly expected: Expectation
  readonly index: number
}

/** The last of several. */
async function resultOf(app: DryApp, { config, name, expected, index }: Case): Promise<DryResult> {
  const [method = '', target = ''] = expected.request.split(' ')
  const { roles, body, times } = expected
  const identity = { id: `${name}-${index}`, username: name, name, roles: roles ?? [], profile: {} }
  const cookie = roles && (await app.signIn({ source: 'expect', identity }))
  const chosen = Object.entries(expected.headers).map(([field, value]) => [
    field.toLowerCase(),
    value
  ])
  const request = {
    method,
    target,
    address: expected.address ?? `198.18.${(index >> 8) & 255}.${index & 255}`,
    headers: {
      host: config.gateway.server.hosts[0] ?? 'localhost',
      ...(cookie !== undefined && { cookie }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(Object.fromEntries(chosen) as Record<string, string>)
    },
    ...(body !== undefined && { body: JSON.stringify(body) })
  }
  for (let n = 1; n < times; n++) await app.ask(request)
  return await app.ask(request)
}

/** Compares an expectation with the response and with the request that its upstream got. */
function mismatches(
  expected: Expectation,
  { status, record, body, calls }: DryResult
): Array<readonly [key: string, message: string]> {
  // Those of parts count only if the route has no upstream of its own.
  const sent = calls.find(({ part }) => part === undefined) ?? calls.at(-1)
  const code = record?.code
  const result = `got ${status}${code === undefined ? '' : ` ${code}`}`
  const target =
    sent === undefined ? `no upstream was called (${result})` : `${sent.upstream} got ${sent.path}`
  const found: Array<readonly [string, string]> = []
  if (expected.status !== undefined && expected.status !== status) {
    found.push(['status', `expected ${expected.status}, ${result}`])
  }
  if (expected.code !== undefined && expected.code !== code) {
    found.push(['code', `expected ${expected.code}, ${result}`])
  }
  if (expected.upstream !== undefined && expected.upstream !== sent?.upstream) {
    found.push(['upstream', `expected ${expected.upstream}; ${target}`])
  }
  if (expected.upstreamPath !== undefined && expected.upstreamPath !== sent?.path) {
    found.push(['upstreamPath', `expected ${expected.upstreamPath}; ${target}`])
  }
  if (expected.response !== undefined) {
    const difference = differenceIn(bodyOf(body), expected.response, '')
    if (difference !== undefined) found.push(['response', `${difference} (${result})`])
  }
  return found
}

function bodyOf(text: string): unknown {
  try {
    return parseKeepingDigits(text)
  } catch {
    return text
  }
}

const isHolder = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The first difference; members that are not expected are none. */
function differenceIn(actual: unknown, expected: unknown, place: string): string | undefined {
  const at = place === '' ? '' : ` at ${place}`
  const [written, got] = [JSON.stringify(expected), JSON.stringify(actual) ?? 'nothing']
  if (!isHolder(expected)) {
    return written === got ? undefined : `expected ${written}${at}, got ${got.slice(0, 200)}`
  }
  if (!isHolder(actual) || Array.isArray(actual) !== Array.isArray(expected)) {
    return `expected ${written}${at}, got ${got.slice(0, 200)}`
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length !== actual.length) {
    return `expected ${expected.length} items${at}, got ${actual.length}`
  }
  for (const [name, member] of Object.entries(expected)) {
    const inner = Array.isArray(expected) ? `${place}[${name}]` : `${place && `${place}.`}${name}`
    const own = Object.hasOwn(actual, name) ? (actual as Record<string, unknown>)[name] : undefined
    const difference = differenceIn(own, member, inner)
    if (difference !== undefined) return difference
  }
  return undefined
}
