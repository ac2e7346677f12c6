import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { FoundRequests } from '../observability/failures.ts'
import { adviceOf, stateTexts } from '../observability/request-story.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import { maintenanceInWords } from '../services/maintenance.ts'
import { addRoute, type Desk } from './routes.ts'
import { flag, like, list, name, object, optional, text, time } from './schemas.ts'
import { planAnswer, reloadAnswer, replicasAnswer, statusAnswer } from './state-schemas.ts'

/** Whether the operator accepts that most sessions of file users end: only `true` does. */
const reloadBody = object({ yes: optional(Type.Unknown()) })

const requestQuery = object({
  id: optional(
    like('^[A-Za-z0-9_.-]{1,64}$', 'Of `X-Request-Id`: up to 64 letters, digits, and _ . -')
  ),
  status: optional(like('^(?:failed|[1-5]xx|[1-5][0-9]{2})$', '`failed`, `4xx` or `404`.')),
  route: optional(name('Of the config.')),
  user: optional(name('Name or id of a user.')),
  last: optional(like('^(?:[1-9][0-9]?|[1-4][0-9]{2}|500)$', 'So many, at most 500; or 50.'))
})

const requestsAnswer = Type.Unsafe<FoundRequests>(
  object({
    requests: list(object({}), 'Newest first; docs/observability.md has their members.'),
    hasMore: flag({ description: 'Whether more fit.' }),
    oldestAt: optional(time),
    problem: optional(text('Why those of other replicas are missing.'))
  })
)

export function partsOf(state: GatewayState): Readonly<Record<string, string>> {
  const { phase, config, redis, ledger, maintenance, upstreams, sourceFaults } = state
  const byUpstream = Map.groupBy(upstreams, ({ upstream }) => upstream)
  const parts = {
    gateway: phase === 'serving' ? '' : phase,
    maintenance: maintenance.map(each => `${each.author} ${maintenanceInWords(each)}`).join('; '),
    sessions: redis === undefined ? 'in this process' : '',
    config: configText(config),
    redis: redisText(redis),
    audit: ledgerText(ledger),
    ...Object.fromEntries(
      sourceFaults.map(({ source, since, reason }) => [
        `sign-in ${source}`,
        `does not answer since ${new Date(since).toISOString()}: ${reason}`
      ])
    ),
    ...Object.fromEntries(
      Array.from(byUpstream, ([of, all]) => [`upstream ${of}`, upstreamText(all)])
    )
  }
  return Object.fromEntries(Object.entries(parts).filter(([, words]) => words !== ''))
}

/** With refused files a replica stays ready, since it runs the last good config. */
function configText({ files, generation }: GatewayState['config']): string {
  if (files.state === 'running') return ''
  const { since, faults } = files
  return `generation ${generation} runs; the files were refused at ${since}: ${faults[0]}`
}

function redisText(redis: GatewayState['redis']): string {
  if (redis === undefined) return ''
  const { up, hasConnected, fault = 'up' } = redis
  if (up) return fault
  return hasConnected ? 'away: what needs a session answers 503' : 'not reached yet'
}

function ledgerText(ledger: GatewayState['ledger']): string {
  const { failing, headFailing, waiting, lost } = ledger ?? {}
  if (failing !== undefined) {
    const since = new Date(failing.since).toISOString()
    return `cannot be written since ${since} (${failing.reason}): ${waiting} entries wait, ${lost} lost`
  }
  return headFailing === undefined ? '' : `its head cannot be stored: ${headFailing}`
}

function upstreamText(all: readonly AddressUse[]): string {
  const down = all.filter(({ state }) => state !== 'up')
  if (down.length === 0) return ''
  const texts = down.map(({ address, state }) => `${address} ${stateTexts[state]}`).join(', ')
  return `degraded, ${down.length} of ${all.length} addresses: ${texts}`
}

export function addStateRoutes(ops: FastifyInstance, desk: Desk): void {
  addRoute(ops, '/status', 'What runs: version, config, state.', {
    answer: statusAnswer,
    run: () => {
      const state = desk.state()
      const { version, startedAt, ready, upstreams, config } = state
      const parts = partsOf(state)
      return { version, pid: process.pid, startedAt, ready, parts, upstreams, ...config }
    }
  })
  addRoute(ops, '/replicas', 'All replicas: host, version, config, faults.', {
    answer: replicasAnswer,
    run: desk.replicas
  })
  addRoute(ops, '/plan', 'Where the files differ from what runs, and what they would change.', {
    answer: planAnswer,
    run: desk.plan
  })
  addRoute(ops, '/reload', 'Reads the config files and runs their config.', {
    kind: 'config.reload',
    takes: reloadBody,
    answer: reloadAnswer,
    run: async ({ yes }, { operator }) => await desk.reload(yes === true, operator)
  })
  addRoute(ops, '/requests', 'Requests that failed, were slow or changed something, and why.', {
    takes: requestQuery,
    answer: requestsAnswer,
    run: async ({ last = '50', ...wanted }) => {
      const found = await desk.failures.find({ ...wanted, last: Number(last) })
      const requests = found.requests.map(each => ({ ...each, ...adviceOf(each.code) }))
      return { ...found, requests }
    }
  })
}
