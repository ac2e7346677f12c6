/** Pieces of the hot path alone: CPU time of a call, by turns with an empty one. */
import { createSessionCookieReader } from '../src/app/hooks/session-cookie.ts'
import { createCachedSigner } from '../src/app/hooks/signer.ts'
import { SharedCounts } from '../src/limits/shared-counts.ts'
import { createSampler } from '../src/observability/traces/sampler.ts'
import { contextOf, writeContext } from '../src/observability/traces/trace-context.ts'
import { createMemoryStore } from '../src/session/memory-store.ts'
import { keyOf } from '../src/session/record.ts'
import { createSeal } from '../src/session/seal.ts'
import { createSessions } from '../src/session/session.ts'
import { createObservation } from './observation.ts'
import type { Outcome, Stage } from './cases.ts'
import { interval } from './rounds.ts'

const calls = 1_000_000
/** Of as many users as the other cases have. */
const users = 64
const secret = 'a secret for the bench, long enough for anyone'

interface Piece {
  readonly label: string
  /** Before each turn: what lasts for a second only. */
  readonly prepare?: () => Promise<unknown>
  /** @returns whether the call did what is measured */
  readonly call: (index: number) => boolean
}

export async function pieces({ pairRounds }: Pick<Stage, 'pairRounds'>): Promise<Outcome> {
  const empty: Piece = { label: 'an empty call', call: index => index >= 0 }
  const measured = [
    empty,
    sharedCount(),
    await cachedSession(),
    sessionCookie(),
    traceContext(),
    ...observations()
  ]
  const nanos = measured.map((): number[] => [])
  // The first round warms up.
  for (let round = -1; round < pairRounds; round++) {
    for (const [index, piece] of measured.entries()) {
      const each = await nanosPerCall(piece)
      if (round >= 0) nanos[index]?.push(each)
    }
  }
  const [ofEmpty = []] = nanos
  return {
    title: `Pieces alone: ${calls.toLocaleString('en')} calls a turn, ${pairRounds} rounds by turns; in brackets the 95 % interval of the median`,
    columns: ['CPU ns a call', 'without the empty call, ns'],
    rows: measured.map(({ label }, index) => {
      const own = nanos[index] ?? []
      const more = own.map((value, round) => value - (ofEmpty[round] ?? NaN))
      return { label, cells: [interval(own), index === 0 ? undefined : interval(more)] }
    }),
    verdicts: []
  }
}

async function nanosPerCall({ label, prepare, call }: Piece): Promise<number> {
  await prepare?.()
  const before = process.cpuUsage()
  let done = 0
  for (let index = 0; index < calls; index++) if (call(index)) done++
  const { user, system } = process.cpuUsage(before)
  if (done < calls) throw new Error(`${label}: ${calls - done} calls of ${calls} took another way`)
  return ((user + system) * 1000) / calls
}

function sharedCount(): Piece {
  const counts = new SharedCounts(undefined)
  const rate = { max: 1_000_000_000, windowMs: 60_000, burst: 1_000_000_000 }
  const keys = Array.from({ length: users }, (_, user) => `u:${user} signed-in`)
  return {
    label: 'limits: `hit` of counts kept here',
    call: index => !(counts.hit(keys[index % users] ?? '', rate) instanceof Promise)
  }
}

function traceContext(): Piece {
  const options = { sampler: createSampler('parentbased_always_on', 1), isRecording: false }
  const headers: Record<string, string> = {}
  return {
    label: 'traces: the context of a new trace, and its header for one call',
    call: () => {
      writeContext(headers, contextOf({}, options), true)
      return headers['traceparent'] !== undefined
    }
  }
}

async function cachedSession(): Promise<Piece> {
  const sessions = createSessions({
    store: createMemoryStore(),
    seal: createSeal([secret]),
    lifeTimes: { idle: 1_800_000, absolute: 28_800_000, remembered: {} },
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 3_600_000
  })
  const ids = Array.from({ length: users }, (_, user) => `a-secret-id-of-usual-length-${user}`)
  for (const [user, id] of ids.entries()) {
    await sessions.open(id, {
      identity: {
        id: `id-${user}`,
        username: `user.${user}`,
        name: 'A Name of Usual Length',
        roles: ['admin'],
        profile: {}
      },
      source: 'upstream-login:backend',
      credential: { token: 'x'.repeat(40) },
      remembered: false,
      address: '192.0.2.1',
      agent: 'Mozilla/5.0'
    })
  }
  const keys = ids.map(keyOf)
  return {
    label: 'sessions: `getCachedByKey`',
    prepare: async () => await Promise.all(ids.map(id => sessions.get(id))),
    call: index => sessions.getCachedByKey(keys[index % users] ?? '') !== undefined
  }
}

function observations(): Piece[] {
  const label = 'observing a request: metrics, trace context'
  return [
    {
      label: `${label}, log line, record for \`why\``,
      call: createObservation({ level: 'info', keep: 10_000 })
    },
    {
      label: `${label}, record for \`why\``,
      call: createObservation({ level: 'silent', keep: 10_000 })
    },
    { label: `${label}, log line`, call: createObservation({ level: 'info', keep: 0 }) }
  ]
}

function sessionCookie(): Piece {
  const start = 'theme=dark; sid='
  const signer = createCachedSigner([secret])
  const headers = Array.from(
    { length: users },
    (_, user) => start + signer.sign(`a-secret-id-${user}`)
  )
  const read = createSessionCookieReader({ name: 'sid', secrets: [secret] })
  return {
    label: 'cookie: the session of a known one',
    call: index => read(headers[index % users] ?? '') !== undefined
  }
}
