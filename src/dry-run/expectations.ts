/** Runs the expectations of `routes.yaml` through the real app, without sockets. */
import type { Expectation } from '../config/schema/expectations.ts'
import type { Fault } from '../config/schema/faults.ts'
import type { LoadedConfig } from '../config/schema/config.ts'
import { createMemoryLockouts, type Lockouts } from '../limits/lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import {
  type OfflineResponse,
  type RecordedRequest,
  createOfflineApp,
  withoutMaintenance
} from './offline-app.ts'
import { parseKeepingDigits } from '../json/digits.ts'

/** One fault for each expectation that fails. */
export async function expectationFaults(
  config: LoadedConfig,
  yieldToRequests: () => Promise<void>
): Promise<Fault[]> {
  const { counts, lockouts, reset } = createCounts()
  let sent: RecordedRequest | undefined
  let upstreamResponse: unknown
  const names = ['errorCode', config.gateway.envelope.custom?.members.errorCode, 'code']
  const app = await createOfflineApp(withoutMaintenance(withErrorCode(config)), {
    counts,
    lockouts,
    source: { name: 'expect', verify: async () => ({ vouched: false }) },
    onUpstreamRequest: request => {
      // A part counts only if the route has no upstream of its own.
      if (!request.isPart || sent?.isPart !== false) sent = request
      return upstreamResponse
    }
  })

  async function faultsOf(name: string, expected: Expectation, index: number): Promise<Fault[]> {
    try {
      return await mismatchFaults(name, expected, index)
    } catch (error) {
      // Headers that no client can send, or a response that broke off.
      const reason = `this request cannot be tried: ${(error as Error).message}`
      return [config.fault('routes', ['expect', name], reason)]
    }
  }

  async function mismatchFaults(
    name: string,
    expected: Expectation,
    index: number
  ): Promise<Fault[]> {
    reset()
    upstreamResponse = expected.answer
    const [method = '', target = ''] = expected.request.split(' ')
    const id = `${name}-${index}`
    const { roles } = expected
    const identity = { id, username: name, name, roles: roles ?? [], profile: {} }
    const user = { source: 'expect', identity }
    const cookie = roles === undefined ? undefined : await app.signIn(user)
    const headers = Object.fromEntries(
      Object.entries(expected.headers).map(([field, value]) => [field.toLowerCase(), value])
    )
    let response: OfflineResponse | undefined
    for (let n = 0; n < expected.times; n++) {
      sent = undefined
      response = await app.ask({
        method,
        target,
        address: expected.address ?? `198.18.${(index >> 8) & 255}.${index & 255}`,
        headers: {
          host: config.gateway.server.hosts[0] ?? 'localhost',
          ...(cookie !== undefined && { cookie }),
          ...(expected.body !== undefined && { 'content-type': 'application/json' }),
          ...headers
        },
        ...(expected.body !== undefined && { body: JSON.stringify(expected.body) })
      })
    }
    return response === undefined
      ? []
      : mismatches(expected, { ...response, code: codeOf(response.body, names) }, sent).map(
          ([key, message]) => config.fault('routes', ['expect', name, key], message)
        )
  }

  try {
    const faults: Fault[] = []
    for (const [index, [name, expected]] of Object.entries(config.routes.expect).entries()) {
      await yieldToRequests()
      faults.push(...(await faultsOf(name, expected, index)))
    }
    return faults
  } finally {
    await app.close()
    await counts.close()
  }
}

/** Counts and failures in memory, reset before each expectation. */
function createCounts() {
  const counts = new SharedCounts(undefined)
  let failures = createMemoryLockouts()
  const lockouts: Lockouts = {
    take: buckets => failures.take(buckets),
    giveBack: (buckets, taken) => failures.giveBack(buckets, taken),
    list: () => failures.list(),
    lift: keys => failures.lift(keys)
  }
  const reset = () => {
    counts.clear()
    failures = createMemoryLockouts()
  }
  return { counts, lockouts, reset }
}

/** Compares an expectation with the response and with the request that its upstream got. */
function mismatches(
  expected: Expectation,
  { status, code }: Pick<OfflineResponse, 'status'> & { readonly code: string | undefined },
  sent: RecordedRequest | undefined
): Array<readonly [key: string, message: string]> {
  const result = `got ${status}${code === undefined ? '' : ` ${code}`}`
  const target =
    sent === undefined ? `no upstream was called (${result})` : `${sent.upstream} got ${sent.path}`
  const failures: Array<readonly [string, string]> = []
  if (expected.status !== undefined && expected.status !== status) {
    failures.push(['status', `expected ${expected.status}, ${result}`])
  }
  if (expected.code !== undefined && expected.code !== code) {
    failures.push(['code', `expected ${expected.code}, ${result}`])
  }
  if (expected.upstream !== undefined && expected.upstream !== sent?.upstream) {
    failures.push(['upstream', `expected ${expected.upstream}; ${target}`])
  }
  if (expected.upstreamPath !== undefined && expected.upstreamPath !== sent?.path) {
    failures.push(['upstreamPath', `expected ${expected.upstreamPath}; ${target}`])
  }
  return failures
}

/** A custom envelope without the error code has one here: expectations are about codes. */
function withErrorCode(config: LoadedConfig): LoadedConfig {
  const { custom } = config.gateway.envelope
  if (custom === undefined || custom.members.errorCode !== false) return config
  const members = { ...custom.members, errorCode: 'errorCode' }
  const envelope = { ...config.gateway.envelope, custom: { ...custom, members } }
  return { ...config, gateway: { ...config.gateway, envelope } }
}

/** @param names of the members that hold the error code in some dialect */
function codeOf(
  body: string,
  names: ReadonlyArray<string | false | undefined>
): string | undefined {
  try {
    const members = parseKeepingDigits(body) as Record<string, unknown>
    const values = names.map(name => (typeof name === 'string' ? members[name] : undefined))
    return values.find(value => typeof value === 'string')
  } catch {
    return undefined
  }
}
