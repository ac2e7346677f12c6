/** Tries what `routes.yaml` expects of itself. */
import type { Expectation } from './config/expectations.ts'
import type { Fault } from './config/faults.ts'
import type { LoadedConfig } from './config/load.ts'
import { createRehearsal, type Rehearsal, type Rehearsed } from './rehearsal.ts'

/** One fault for each expectation that does not hold. */
export async function expectationFaults (config: LoadedConfig): Promise<Fault[]> {
  const rehearsal = await createRehearsal(config)
  try {
    const faults: Fault[] = []
    for (const [index, [name, expected]] of Object.entries(config.routes.expect).entries()) {
      const rehearsed = await rehearse(rehearsal, expected, name, index)
      faults.push(...differences(expected, rehearsed).map(([key, message]) => config.fault('routes', ['expect', name, key], message)))
    }
    return faults
  } finally {
    await rehearsal.close()
  }
}

async function rehearse (rehearsal: Rehearsal, { request, roles, headers, body, address, times, answer }: Expectation, name: string, index: number): Promise<Rehearsed> {
  const [method = '', url = ''] = request.split(' ')
  const id = `${name}-${index}`
  return await rehearsal.ask({
    method,
    url,
    address: address ?? `198.18.${index >> 8 & 255}.${index & 255}`,
    ...(roles !== undefined && { identity: { id, username: name, name, roles, profile: {} } }),
    headers,
    body,
    times,
    answer
  })
}

function differences (expected: Expectation, { status, code, asked: all }: Rehearsed): Array<readonly [key: string, message: string]> {
  const asked = all.find(({ isPart }) => !isPart) ?? all.at(-1)
  const was = `got ${status}${code === undefined ? '' : ` ${code}`}`
  const went = asked === undefined ? `no upstream was asked (${was})` : `${asked.upstream} was asked for ${asked.path}`
  const found: Array<readonly [string, string]> = []
  if (expected.status !== undefined && expected.status !== status) found.push(['status', `expected ${expected.status}, ${was}`])
  if (expected.code !== undefined && expected.code !== code) found.push(['code', `expected ${expected.code}, ${was}`])
  if (expected.upstream !== undefined && expected.upstream !== asked?.upstream) found.push(['upstream', `expected ${expected.upstream}; ${went}`])
  if (expected.upstreamPath !== undefined && expected.upstreamPath !== asked?.path) found.push(['upstreamPath', `expected ${expected.upstreamPath}; ${went}`])
  return found
}
