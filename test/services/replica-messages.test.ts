/** What replicas accept of each other's messages: the bounds of age, length and number. */
import t from 'tap'
import { type RefusedReason, ReplicaMessages } from '../../src/services/replica-messages.ts'
import { createReplicaSeal } from '../../src/services/replica-seal.ts'

const seal = createReplicaSeal(['a secret of at least thirty-two characters'])
const maxAgeMs = 30_000
const maxNonces = 10_000

/** @param upForMs the time since this replica began */
function replica(id: string, upForMs = 100_000) {
  const clock = { now: 1_800_000_000_000, ticks: 0 }
  const refused: RefusedReason[] = []
  const messages = new ReplicaMessages({
    seal,
    id,
    now: () => clock.now,
    ticks: () => clock.ticks,
    onRefused: reason => void refused.push(reason)
  })
  clock.ticks = upForMs
  const pass = (ms: number) => {
    clock.now += ms
    clock.ticks += ms
  }
  let asked = 0
  /** Opens a question of another replica that was written so long before. */
  const hear = (ageMs: number, nonce = `nonce ${++asked}`) =>
    messages.openQuestion(
      seal.close(
        'question',
        JSON.stringify({ nonce, from: 'other', at: clock.now - ageMs, kind: 'ask', payload: {} })
      )
    )
  return { messages, clock, refused, pass, hear }
}

t.test('a question is taken up to its greatest age, of the past or of the future', async t => {
  const { hear, refused } = replica('a')
  t.ok(hear(0))
  t.ok(hear(maxAgeMs))
  t.ok(hear(-maxAgeMs))
  t.same(refused, [])
  t.notOk(hear(maxAgeMs + 1))
  t.notOk(hear(-maxAgeMs - 1))
  t.notOk(hear(Number.NaN), 'one without a time')
  t.same(refused, ['stale', 'stale', 'stale'])
})

t.test('a question from before the start was one for the process before', async t => {
  const { hear, refused } = replica('a', 100)
  t.ok(hear(100))
  t.notOk(hear(101))
  t.same(refused, ['stale'])
})

t.test('a question of our own is neither answered nor refused', async t => {
  const { messages, refused } = replica('a')
  const { text, nonce } = messages.closeQuestion('ask', { page: 1 })
  t.equal(messages.openQuestion(text), undefined)
  t.same(refused, [])
  const heard = replica('b').messages.openQuestion(text)
  t.match(heard?.question, { nonce, from: 'a', kind: 'ask', payload: { page: 1 } })
})

t.test('a question is taken once for as long as its time would let it pass', async t => {
  const { hear, refused, pass } = replica('a')
  t.ok(hear(-maxAgeMs, 'of the future'))
  pass(2 * maxAgeMs)
  t.ok(hear(0), 'others are forgotten meanwhile')
  t.notOk(hear(maxAgeMs, 'of the future'))
  t.same(refused, ['replayed'])
  pass(1)
  t.ok(hear(0))
  t.notOk(hear(maxAgeMs + 1, 'of the future'))
  t.same(refused, ['replayed', 'stale'], 'now its age refuses it')
})

t.test('so many questions within a minute, and more once the first are too old', async t => {
  const { hear, refused, pass } = replica('a')
  for (let index = 0; index < maxNonces; index++) {
    if (hear(0) === undefined) t.fail(`question ${index} is refused`)
  }
  t.notOk(hear(0))
  t.same(refused, ['crowded'])
  t.notOk(hear(0, 'nonce 1'))
  t.same(refused, ['crowded', 'replayed'], 'the first one is known still')
  pass(2 * maxAgeMs)
  t.notOk(hear(0))
  pass(1)
  t.ok(hear(0))
  t.same(refused, ['crowded', 'replayed', 'crowded'])
})

/** Sealed texts grow by the length of what they hold, after the same overhead. */
function ofLength(length: number, close: (filling: string) => string): string {
  const sealedLength = (size: number) => close('x'.repeat(size)).length
  let [least, most] = [0, length]
  while (least < most) {
    const middle = Math.ceil((least + most) / 2)
    if (sealedLength(middle) <= length) least = middle
    else most = middle - 1
  }
  return 'x'.repeat(least)
}

t.test('a question of 256 KiB goes, a longer one is an error of the asker', async t => {
  const { messages, refused } = replica('a')
  const max = 256 * 1024
  const close = (filling: string) => seal.close('question', filling)
  const overhead = JSON.stringify({
    nonce: 'x'.repeat(22),
    from: 'a',
    at: 1_800_000_000_000,
    kind: 'ask',
    payload: ''
  }).length
  const room = ofLength(max, close).length
  const { text } = messages.closeQuestion('ask', 'x'.repeat(room - overhead))
  t.ok(text.length <= max)
  t.ok(replica('b').messages.openQuestion(text), 'and is read')
  const tooLong = () => messages.closeQuestion('ask', 'x'.repeat(room - overhead + 1))
  t.throws(tooLong, { name: 'RangeError', message: 'the message is too long' })
  t.equal(messages.openQuestion('x'.repeat(max)), undefined)
  t.equal(messages.openQuestion('x'.repeat(max + 1)), undefined)
  t.same(refused, ['unsealed', 'oversized'])
})

t.test('a reply opens for the replica that asked, and for no other', async t => {
  const [asker, answering, other] = [replica('a'), replica('b'), replica('c')]
  const { text, nonce } = asker.messages.closeQuestion('ask', {})
  const heard = answering.messages.openQuestion(text)
  if (heard === undefined) return t.fail('the question was not read')
  const reply = answering.messages.closeReply(heard.question, heard.replySeal, { value: 1 })
  t.same(asker.messages.openReply(reply), { nonce, from: 'b', value: 1 })
  t.equal(other.messages.openReply(reply), undefined)
  t.same(other.refused, ['unsealed'])
  t.same(asker.refused, [])
})

t.test('instead of a reply over 12 MiB there is one that says so', async t => {
  const max = 12 * 1024 * 1024
  const [asker, answering] = [replica('a'), replica('b')]
  const heard = answering.messages.openQuestion(asker.messages.closeQuestion('ask', {}).text)
  if (heard === undefined) return t.fail('the question was not read')
  const { question, replySeal } = heard
  const replyOf = (value: string) => answering.messages.closeReply(question, replySeal, { value })
  const long = replyOf('x'.repeat(max * 0.7))
  t.ok(long.length > max * 0.9 && long.length <= max)
  t.match(asker.messages.openReply(long), { value: /^x+$/ })
  t.match(asker.messages.openReply(replyOf('x'.repeat(max))), { error: 'the reply is too long' })
  t.equal(asker.messages.openReply('x'.repeat(max)), undefined)
  t.equal(asker.messages.openReply('x'.repeat(max + 1)), undefined)
  t.same(asker.refused, ['unsealed', 'oversized'])
})
