/** What a stored record is worth: its end by each of its clocks, and all that makes it no session. */
import t from 'tap'
import { createEvaluator, tombstoneMs, withIdleEnd } from '../../src/session/evaluate.ts'
import type { Session } from '../../src/session/record.ts'
import { createRecordFormat } from '../../src/session/record-format.ts'
import type { Review } from '../../src/session/review.ts'
import { createSeal } from '../../src/session/seal.ts'

const minute = 60_000
const begin = 1_700_000_000_000
const key = 'a'.repeat(64)
const sealOf = (secret: string) => createSeal([`${secret} of at least thirty-two characters`])
const format = createRecordFormat(sealOf('the secret'))

const session: Session = {
  id: 'public',
  identity: { id: '1', username: 'mia', name: 'Mia', roles: ['admin', 'clerk'], profile: {} },
  source: 'users-file',
  remembered: false,
  createdAt: begin,
  absoluteEnd: begin + 60 * minute,
  idleMs: 30 * minute,
  address: '192.0.2.1',
  agent: 'test'
}

function setUp(review: (session: Session) => Review = () => 'unchanged') {
  const clock = { now: begin }
  const { parse, evaluate } = createEvaluator(format, () => clock.now, { review })
  const stored = (changes: Partial<Session> = {}, epoch = 3, ttlMs = 30 * minute + tombstoneMs) =>
    parse(key, { record: format.close(key, { session: { ...session, ...changes }, epoch }), ttlMs })
  return { clock, parse, evaluate, stored }
}

t.test('a session is over at its idle end and at its absolute end, to the millisecond', async t => {
  const { clock, evaluate, stored } = setUp()
  const idle = stored()
  t.match(idle, { live: { idleEnd: begin + 30 * minute, session } })
  clock.now = begin + 30 * minute - 1
  t.match(evaluate(idle, 3), { live: { key, session } })
  clock.now++
  t.same(evaluate(idle, 3), { ended: 'idle' })
  const used = withIdleEnd(idle, begin + 90 * minute)
  clock.now = begin + 60 * minute - 1
  t.match(evaluate(used, 3), { live: { key, session } })
  clock.now++
  t.same(evaluate(used, 3), { ended: 'absolute' })
  clock.now = begin + 90 * minute
  t.same(evaluate(used, 3), { ended: 'absolute' }, 'of two ends the final one is told')
})

t.test('use makes an idle end later, never earlier', async t => {
  const { stored } = setUp()
  const record = stored()
  t.match(withIdleEnd(record, begin + 31 * minute), { live: { idleEnd: begin + 31 * minute } })
  t.equal(withIdleEnd(record, begin + 30 * minute), record)
  t.equal(withIdleEnd(record, begin), record)
  const over = { ended: 'idle' } as const
  t.equal(withIdleEnd(over, begin + 31 * minute), over)
})

t.test('a session of another epoch than the present one is no session', async t => {
  const { evaluate, stored } = setUp()
  t.match(evaluate(stored({}, 3), 3), { live: { key } })
  t.same(evaluate(stored({}, 2), 3), { ended: 'revoked' })
  t.same(evaluate(stored({}, 4), 3), { ended: 'unknown' }, 'the epoch that is known is too old')
})

t.test('a user who is refused has no session, whatever time it has left', async t => {
  const { evaluate, stored } = setUp(() => 'refused')
  t.same(evaluate(stored(), 3), { ended: 'revoked' })
})

t.test('a session is served with the rights that both sides grant', async t => {
  const withRoles = (of: Session, roles: readonly string[]) => ({
    ...of,
    identity: { ...of.identity, roles }
  })
  const { evaluate, stored } = setUp(of => ({
    narrowed: withRoles(of, ['clerk']),
    renewed: withRoles(of, ['clerk', 'auditor'])
  }))
  const record = stored()
  t.match(evaluate(record, 3), { live: { session: { identity: { roles: ['clerk'] } } } })
  t.match(record, { stored: { identity: { roles: ['admin', 'clerk'] } } })
})

t.test('no record, and what is none, is unknown; a tombstone tells its reason', async t => {
  const { parse, evaluate } = setUp()
  const evaluated = (record: string) => evaluate(parse(key, { record, ttlMs: 30 * minute }), 3)
  t.same(evaluate(undefined, 3), { ended: 'unknown' })
  const text = format.close(key, { session, epoch: 3 })
  t.same(evaluated(`${text}A`), { ended: 'unknown' })
  t.same(evaluated(format.close('b'.repeat(64), { session, epoch: 3 })), { ended: 'unknown' })
  t.same(evaluated('!replaced'), { ended: 'replaced' })
  t.same(evaluated('!a reason of later'), { ended: 'revoked' })
  t.same(evaluated('!'), { ended: 'revoked' })
})

t.test('a record of another secret, or without its version, is unknown', async t => {
  const { parse, evaluate } = setUp()
  const evaluated = (record: string) => evaluate(parse(key, { record, ttlMs: 30 * minute }), 3)
  const content = { session, epoch: 3 }
  const written = format.close(key, content)
  t.match(written, /^1[\w-]{6}\.[\w-]+$/)
  t.match(evaluated(written), { live: {} })
  for (const other of [written.slice(1), `2${written.slice(1)}`, `4.${written.slice(1)}`]) {
    t.same(evaluated(other), { ended: 'unknown' }, other.slice(0, 4))
  }
  const another = createRecordFormat(sealOf('another secret'))
  t.same(evaluated(another.close(key, content)), { ended: 'unknown' })
})
