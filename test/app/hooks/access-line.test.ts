/** The access line is written without pino: it must be the line that pino would write. */
import { parseKeepingDigits } from '../../../src/json/digits.ts'
import { mock } from 'node:test'
import fc from 'fast-check'
import pino from 'pino'
import t from 'tap'
import { accessMembers } from '../../../src/app/hooks/access-line.ts'
import { isRemarkable, reasonsOf } from '../../../src/app/hooks/request-facts.ts'
import { infoWriter } from '../../../src/observability/log.ts'
import { toHundredths } from '../../../src/observability/request-record.ts'
import { Trail, TrailAttempt } from '../../../src/observability/trail.ts'
import { createLogger } from '../../../src/services/logger.ts'
import { seed } from '../../support/seed.ts'

const now = mock.method(Date, 'now', () => 1_764_000_000_007)
t.teardown(() => now.mock.restore())

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'

/** Also with quotes, controls, line separators and halves of characters. */
const text = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.string({ unit: 'binary', maxLength: 120 }),
  fc.string({
    unit: fc.constantFrom('"', '\\', '\n', '\u0000', '\u007f', '\u2028', '\ud83d', '\ude00', 'a')
  })
)
const time = fc.oneof(
  fc.double({ min: 0, max: 100, noNaN: true }),
  fc.integer({ min: 0, max: 10_000_000 }).map(count => count / 100),
  fc.constantFrom(0, -0, -1.5, 0.005, 29.999, 21_474_836.47, 21_474_836.48, 1e25, Infinity, NaN)
)
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })

const attempt = fc.record({
  address: text,
  part: maybe(text),
  status: maybe(fc.integer({ min: 100, max: 599 })),
  failure: maybe(fc.constantFrom('upstream.refused' as const, 'left' as const)),
  ms: maybe(time)
})
const written = fc.record({
  route: text,
  status: fc.integer({ min: 200, max: 599 }),
  isCut: fc.boolean(),
  ms: time,
  upstreamMs: maybe(time),
  code: maybe(fc.constantFrom('route.unknown' as const, 'upstream.refused' as const)),
  user: maybe(text),
  userId: maybe(text),
  session: maybe(fc.constant('a1b2c3d4e5f6')),
  limit: maybe(text),
  missing: maybe(fc.array(text, { maxLength: 2 })),
  trace: maybe(fc.boolean().map(isLogged => ({ isLogged, traceId }) as Trail['trace']))
})
const request = fc.record({
  path: text,
  address: fc.constantFrom('192.0.2.1', '2001:db8::1', ''),
  written,
  attempts: maybe(fc.array(attempt, { maxLength: 3 })),
  endedSession: maybe(fc.constant('0123456789ab'))
})

type Request = typeof request extends fc.Arbitrary<infer T> ? T : never

function trailOf({ path, address, written: members, attempts }: Request): Trail {
  const trail = Object.assign(new Trail('an-id.1', 'GET', '/', address), members, { path })
  trail.attempts = attempts?.map(({ address: asked, part, ...end }) =>
    Object.assign(new TrailAttempt('backend', asked, 'request', part), end)
  )
  return trail
}

/** What pino would be given. */
function membersOf(trail: Trail, endedSession: string | undefined): Record<string, unknown> {
  return {
    requestId: trail.requestId,
    traceId: trail.trace?.isLogged === true ? traceId : undefined,
    route: trail.route,
    method: trail.method,
    path: trail.path,
    status: trail.status,
    ms: toHundredths(trail.ms),
    code: trail.code,
    upstreamMs: trail.upstreamMs === undefined ? undefined : toHundredths(trail.upstreamMs),
    address: trail.address,
    user: trail.user,
    userId: trail.userId,
    session: endedSession === undefined ? trail.session : undefined,
    endedSession,
    ...(isRemarkable(trail) && reasonsOf(trail))
  }
}

t.test('the members of random requests are those that JSON.stringify writes', async t => {
  fc.assert(
    fc.property(request, random => {
      const trail = trailOf(random)
      const { endedSession } = random
      const json = `{${accessMembers(trail, endedSession).slice(1)}}`
      return json === JSON.stringify(membersOf(trail, endedSession))
    }),
    { seed, numRuns: 5000 }
  )
  t.pass('in 5000 runs')
})

for (const base of [null, {}, { worker: 1, host: 'a "b"' }]) {
  t.test(`the line is pino’s own, byte by byte; base: ${JSON.stringify(base)}`, async t => {
    const lines: string[] = []
    const destination = { write: (line: string) => lines.push(line) }
    const log = createLogger({ level: 'info', format: 'json' }, destination, base)
    const writeLine = infoWriter(log, 'request', parseKeepingDigits)
    let compared = 0
    fc.assert(
      fc.property(request, random => {
        const trail = trailOf(random)
        const members = membersOf(trail, random.endedSession)
        // Half of a character is written by pino as it is, and is unreadable in UTF-8.
        fc.pre(
          JSON.stringify(members).isWellFormed() && !/\\ud[89a-f]/.test(JSON.stringify(members))
        )
        writeLine(accessMembers(trail, random.endedSession))
        log.info(members, 'request')
        const [ours, expected] = lines.splice(0)
        compared++
        return ours === expected
      }),
      { seed, numRuns: 1000 }
    )
    t.equal(compared, 1000)
  })
}

t.test('a logger that is not of JSON gets the members as an object', async t => {
  const lines: string[] = []
  const log = pino({ base: null }, { write: (line: string) => lines.push(line) })
  const trail = Object.assign(new Trail('an-id', 'GET', '/a', ''), { route: 'a"b', status: 200 })
  infoWriter(log, 'request', parseKeepingDigits)(accessMembers(trail, undefined))
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 30,
    requestId: 'an-id',
    route: 'a"b',
    msg: 'request'
  })
})
