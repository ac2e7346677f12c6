/** `/ops/api/now`: the present of a replica, as OpenAPI describes it and as the page reads it. */
import { type Static, Type } from 'typebox'

const perSecond = Type.Number({ description: 'Requests a second, over the last ten seconds.' })
const errorShare = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'The share of requests that failed (5xx) in the last ten seconds.'
})
const refusedShare = Type.Number({
  minimum: 0,
  maximum: 1,
  description: 'The share of requests that were refused (4xx) in the last ten seconds.'
})
const share = { requestsPerSecond: perSecond, errorShare }
const millisecondsOrNull = (description: string) =>
  Type.Union([Type.Number(), Type.Null()], { description })
const durations = {
  p50Ms: millisecondsOrNull('Half of the requests were faster; null without any.'),
  p99Ms: millisecondsOrNull('99 of 100 requests were faster; null without any.')
}
const inFlight = Type.Integer({ minimum: 0, description: 'Requests that are being answered.' })
const time = Type.String({ format: 'date-time' })

const routeNow = Type.Object({ route: Type.String(), ...share, refusedShare, ...durations })

const upstreamNow = Type.Object({
  upstream: Type.String(),
  address: Type.String(),
  state: Type.String({
    description: 'up, open (too many requests failed in a row) or unhealthy (by health checks).'
  }),
  inFlight,
  queued: Type.Integer({
    minimum: 0,
    description: 'Requests that wait for a connection of the upstream, at any of its addresses.'
  }),
  ...share
})

const processNow = Type.Object({
  pid: Type.Integer(),
  eventLoopDelayMs: Type.Optional(
    Type.Number({
      description: 'The longest delay in the last ten seconds.'
    })
  ),
  rssBytes: Type.Integer(),
  cpu: Type.Number({ description: 'Share of one core in the last ten seconds.' })
})

const redisNow = Type.Object({
  state: Type.String({ description: 'up, down, or embedded: none is configured.' }),
  latencyMs: millisecondsOrNull('How long it took to answer the last time.'),
  since: Type.Union([time, Type.Null()], { description: 'Since when the state is so.' })
})

const replicaNow = Type.Object({
  id: Type.String(),
  host: Type.String(),
  version: Type.String(),
  configHash: Type.String(),
  ready: Type.Boolean(),
  seenAt: time,
  isSilent: Type.Boolean({ description: 'It told nothing for more than 3 s.' }),
  requestsPerSecond: perSecond,
  errorShare,
  inFlight,
  queued: Type.Integer({ minimum: 0 }),
  p99Ms: millisecondsOrNull('Of all its requests.')
})

export const nowSchema = Type.Object({
  at: time,
  replica: Type.String({ description: 'The id of the replica that answers.' }),
  process: processNow,
  ...share,
  refusedShare,
  inFlight,
  queued: Type.Integer({ minimum: 0, description: 'Requests that wait for an upstream.' }),
  ...durations,
  routes: Type.Array(routeNow, {
    description: 'Those with requests in the last ten seconds, the busiest first; 1,000 at most.'
  }),
  upstreams: Type.Array(upstreamNow),
  redis: redisNow,
  replicas: Type.Array(replicaNow),
  config: Type.Object({
    generation: Type.Integer(),
    hash: Type.String({ description: 'The same for the same config at all replicas.' }),
    state: Type.String({ description: 'running or refused: the state of the files.' })
  })
})

export type Now = Static<typeof nowSchema>

/** One point of the charts, each second: the figures of the ten seconds before it. */
export type Past = Pick<Now, 'requestsPerSecond' | 'errorShare' | 'refusedShare' | 'p99Ms'>
