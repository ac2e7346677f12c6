import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freshSeed } from '../../support/random.ts'
import { plan } from './conversation.ts'
import { fuzz, readRange } from './fuzz.ts'
import { areAtRest } from './verdict.ts'

/** Ends a gateway at its 40th request: by then it is under attack, however slow the machine is. */
function writeFragile(folder: string): string {
  const file = join(folder, 'fragile.js')
  writeFileSync(
    file,
    `import { Server } from 'node:http'
    const { emit } = Server.prototype
    let requests = 0
    Server.prototype.emit = function (name, ...values) {
      if (name === 'request' && ++requests === 40) {
        setImmediate(() => { throw new Error('fragile') })
      }
      return emit.call(this, name, ...values)
    }`
  )
  return file
}

t.test('the same seed makes the same conversations, another one others', async t => {
  const seed = freshSeed()
  const cookies = ['console_sid=one.signature', 'console_sid=two.signature']
  const all = (seed: number) => {
    const plans = Array.from({ length: 50 }, (_, number) => plan(seed, number, cookies))
    return createHash('sha256').update(JSON.stringify(plans)).digest('hex')
  }
  t.equal(all(seed), all(seed))
  t.not(all(seed), all(seed + 1))
})

t.test('an attack finds a gateway that ends, and says why', async t => {
  const fragile = writeFragile(t.testdir())
  const seed = freshSeed()
  const report = await fuzz(t.after, { checkout: '.', seed, seconds: 12, preload: fragile })
  t.match(report.problems, [/the process ended/], `seed ${seed}`)
  t.match([...report.complaints, ...report.stacks].join(), /fragile/)
  t.ok(report.lastRequests.length > 0)
})

t.test('a replay makes only the requests of its range, and names them where it fails', async t => {
  const fragile = writeFragile(t.testdir())
  const seed = freshSeed()
  const report = await fuzz(t.after, {
    checkout: '.',
    seed,
    seconds: 12,
    preload: fragile,
    replay: [40, 42]
  })
  t.match(report.problems, [/the process ended/], `seed ${seed}`)
  t.ok(report.conversations > 3, 'again and again')
  t.same(report.lastNumbers, [40, 42])
})

t.test('a range is two numbers in order, or one', async t => {
  t.same(['100-140', '7', '7-7'].map(readRange), [
    [100, 140],
    [7, 7],
    [7, 7]
  ])
  for (const text of ['140-100', 'a-b', '5-', '-5', '1-2-3', '']) {
    t.equal(readRange(text), undefined, text)
  }
})

t.test('a thread that ended or works is no leak, and hides none', t => {
  const eventpoll = 'anon_inode:[eventpoll]'
  const eventfd = 'anon_inode:[eventfd]'
  const before = { [eventpoll]: 6, 'pipe': 15, [eventfd]: 6, 'socket 1 → 2 (01)': 1 }
  const ended = { [eventpoll]: 5, 'pipe': 13, [eventfd]: 5, 'socket 3 → 2 (01)': 1 }
  t.ok(areAtRest(before, before))
  t.ok(areAtRest(ended, before))
  t.ok(areAtRest(before, ended), 'a thread that works')
  const many = { ...before, [eventpoll]: 11, pipe: 25, [eventfd]: 11 }
  t.notOk(areAtRest(many, before), 'five more threads')
  t.notOk(areAtRest({ ...ended, pipe: 14 }, before), 'a pipe is left')
  t.notOk(areAtRest({ ...ended, 'socket 4 → 2 (01)': 1 }, before), 'a socket is left')
  t.notOk(areAtRest({ ...ended, 'anon_inode:inotify': 1 }, before), 'a watch is left')
  t.end()
})
