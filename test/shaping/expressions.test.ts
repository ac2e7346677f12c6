import { spawnSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mock } from 'node:test'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import type { Json } from '../../src/json/values.ts'
import { createExpressions } from '../../src/shaping/expressions.ts'
import { until } from '../support/until.ts'

const bounds = { timeoutMs: 20_000, maxBytes: 100_000 }
const expressions = createExpressions()
t.teardown(() => expressions.close())

t.test('an expression makes JSON of JSON; what it finds nothing for is null', async t => {
  t.same(
    await expressions.evaluate(
      '{"sum": $sum(items.price), "names": items.name}',
      {
        items: [
          { price: 1, name: 'a' },
          { price: 2, name: 'b' }
        ]
      },
      bounds
    ),
    { sum: 3, names: ['a', 'b'] }
  )
  t.equal(await expressions.evaluate('nothing.here', {}, bounds), null)
  t.equal(await expressions.evaluate('$', null, bounds), null)
  await t.rejects(
    expressions.evaluate('function($x) { $x }', {}, bounds),
    { code: 'shape.expression' },
    'a function is no JSON'
  )
})

t.test('numbers that no double holds come back as they are, and are not computed with', async t => {
  const input = parseKeepingDigits('{"id":9007199254740993,"large":1e400}')
  t.equal(
    JSON.stringify(await expressions.evaluate('$', input, bounds)),
    '{"id":9007199254740993,"large":1e400}'
  )
  t.equal(await expressions.evaluate('id = "9007199254740993"', input, bounds), true)
  const sum = expressions.evaluate('id + 1', input, bounds)
  await t.rejects(sum, { code: 'shape.number-too-long', status: 502 })
})

t.test('$number of a text keeps all digits, whether or not other numbers are long', async t => {
  for (const input of [
    { id: '1234567890123456789' },
    parseKeepingDigits('{"id":"1234567890123456789","n":1e400}')
  ]) {
    const result = await expressions.evaluate('[$number(id), $number("5") + 1]', input, bounds)
    t.equal(JSON.stringify(result), '[1234567890123456789,6]')
    const sum = expressions.evaluate('$number(id) + 1', input, bounds)
    await t.rejects(sum, { code: 'shape.number-too-long', status: 502 })
    const ordered = await expressions.evaluate('[$number(id), 5]^($)', input, bounds)
    t.equal(JSON.stringify(ordered), '[5,1234567890123456789]')
  }
  await t.rejects(expressions.evaluate('$number("x")', {}, bounds), {
    code: 'shape.expression',
    cause: { message: 'JSONata D3030 at position 8' }
  })
})

t.test('many at once each get their own answer', async t => {
  const all = await Promise.all(
    Array.from({ length: 100 }, (_, n) => expressions.evaluate('n * 2', { n }, bounds))
  )
  t.same(
    all,
    Array.from({ length: 100 }, (_, n) => n * 2)
  )
})

t.test('a failing expression is an error that tells no values', async t => {
  const error = (await expressions
    .evaluate('$number(secret)', { secret: 'hunter2' }, bounds)
    .catch((thrown: unknown) => thrown)) as Error
  t.match(error, {
    code: 'shape.expression',
    status: 502,
    cause: { message: /^JSONata D3030 at position \d+$/ }
  })
  t.notMatch(JSON.stringify([error.message, String(error.cause)]), 'hunter2')
})

t.test(
  'one that never ends is stopped, also within a regular expression, and the next one works',
  async t => {
    const short = { ...bounds, timeoutMs: 50 }
    await t.rejects(expressions.evaluate('($f := function($n) { $f($n + 1) }; $f(0))', {}, short), {
      code: 'shape.expression'
    })
    await t.rejects(
      expressions.evaluate('$match(text, /^(a+)+$/)', { text: `${'a'.repeat(60)}!` }, short),
      { code: 'shape.expression', cause: { message: 'the expression took too long' } }
    )
    t.equal(await expressions.evaluate('1 + 1', {}, bounds), 2)
  }
)

t.test('the time of one does not run while it waits for its turn', async t => {
  const attempt = async (ms: number): Promise<boolean> => {
    const slow = expressions.evaluate(
      '$match(text, /^(a+)+$/)',
      { text: `${'a'.repeat(60)}!` },
      { ...bounds, timeoutMs: ms }
    )
    const quick = expressions.evaluate('1 + 1', {}, { ...bounds, timeoutMs: ms * 0.8 })
    await t.rejects(slow)
    return await quick.then(
      () => true,
      () => false
    )
  }
  // A machine that stands still may use up the time of the quick one too: then both get more.
  t.ok((await attempt(300)) || (await attempt(3000)) || (await attempt(20_000)))
})

const endless = '$match(text, /^(a+)+$/)'
const text = { text: `${'a'.repeat(60)}!` }

t.test('expressions of a route that never end hold up no other route', async t => {
  const own = createExpressions()
  const long = { ...bounds, timeoutMs: 300_000 }
  let ended = 0
  const bad = Array.from({ length: 10 }, () =>
    own.evaluate(endless, text, { ...long, route: 'bad' }).catch(() => {
      ended++
    })
  )
  const good = Array.from({ length: 5 }, (_, n) =>
    own.evaluate('n + 1', { n }, { ...bounds, route: 'good' })
  )
  t.same(await Promise.all(good), [1, 2, 3, 4, 5])
  t.equal(ended, 0, 'while the first of the other route still ran')
  await own.close()
  await Promise.all(bad)
  t.equal(ended, 10)
})

t.test('several such routes hold up each other, and no route that never did so', async t => {
  const own = createExpressions()
  const short = { ...bounds, timeoutMs: 50 }
  for (const route of ['bad', 'worse']) {
    await t.rejects(own.evaluate(endless, text, { ...short, route }))
  }
  const bad = ['bad', 'worse', 'bad'].map(route =>
    own.evaluate(endless, text, { ...bounds, timeoutMs: 300_000, route }).catch(() => 'ended')
  )
  for (let n = 0; n < 3; n++) {
    t.equal(await own.evaluate('n', { n }, { ...bounds, route: 'good' }), n)
  }
  await own.close()
  t.same(await Promise.all(bad), ['ended', 'ended', 'ended'])
})

t.test('routes take turns', async t => {
  const own = createExpressions()
  const order: string[] = []
  const run = (route: string) =>
    own.evaluate('1', {}, { ...bounds, route }).then(() => order.push(route))
  await run('first')
  await Promise.all([...Array.from({ length: 20 }, () => run('many')), run('one'), run('other')])
  t.ok(order.indexOf('one') <= 4 && order.indexOf('other') <= 5, order.join(' '))
  await own.close()
})

t.test(
  'the second thread ends when it had no job for long, whatever the first one does',
  async t => {
    const workers: Worker[] = []
    const started = (message: unknown) => workers.push((message as { worker: Worker }).worker)
    subscribe('worker_threads', started)
    t.teardown(() => unsubscribe('worker_threads', started))
    mock.timers.enable({ apis: ['setTimeout'] })
    t.teardown(() => mock.timers.reset())
    const own = createExpressions()
    t.teardown(() => own.close())
    const run = (route: string) => own.evaluate('1', {}, { ...bounds, route })
    const both = [run('first'), run('second')]
    mock.timers.tick(25)
    await Promise.all(both)
    t.equal(workers.length, 2)
    let hasEnded = false
    workers[1]?.once('exit', () => {
      hasEnded = true
    })
    mock.timers.tick(20_000)
    await run('first')
    mock.timers.tick(10_000)
    mock.timers.reset()
    await until('the second thread ends', () => hasEnded, 20_000)
    t.equal(await run('first'), 1)
    t.equal(workers.length, 2, 'the first one goes on')
  }
)

t.test('what goes in and what comes out is bounded, and memory too', async t => {
  await t.rejects(expressions.evaluate('1', 'x'.repeat(1000), { ...bounds, maxBytes: 500 }), {
    code: 'shape.expression',
    cause: { message: 'its input is larger than 500 bytes' }
  })
  await t.rejects(expressions.evaluate('$pad("x", 1000)', 1, { ...bounds, maxBytes: 500 }), {
    code: 'shape.expression',
    cause: { message: 'its result is larger than 500 bytes' }
  })
  await t.rejects(
    expressions.evaluate(
      '[1..9999999].{"n": $, "text": $string($) & "................................"}',
      1,
      bounds
    ),
    { code: 'shape.expression' }
  )
  t.equal(await expressions.evaluate('1 + 1', {}, bounds), 2)
})

t.test('an input within the largest bound ends no process, whatever it becomes in memory', t => {
  const script = `
    import { createExpressions } from '${import.meta.resolve('../../src/shaping/expressions.ts')}'
    const expressions = createExpressions()
    const count = async (length, maxBytes) =>
      console.log(await expressions.evaluate('$count($)', new Array(length).fill([0]), {
        timeoutMs: 60_000,
        maxBytes
      }))
    await count(1000, 256 * 1024)
    await count(1024 * 1024 - 1, 16 * 1024 * 1024)
    await expressions.close()`
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', script],
    { encoding: 'utf8' }
  )
  t.equal(stdout, '1000\n1048575\n', stderr)
  t.equal(status, 0)
  t.end()
})

t.test('more than may wait are refused at once', async t => {
  const all = await Promise.allSettled(
    Array.from({ length: 300 }, () => expressions.evaluate('1', {}, bounds))
  )
  t.equal(all.filter(({ status }) => status === 'rejected').length > 0, true)
  for (const one of all) {
    if (one.status === 'rejected') t.match(one.reason, { code: 'overloaded', status: 503 })
  }
})

t.test('an answer too deep for an expression is refused, and no fault of the gateway', async t => {
  let deep: Json = 1
  for (let depth = 0; depth < 100_000; depth++) deep = [deep]
  const asked = expressions.evaluate('$', deep, { timeoutMs: 1000, maxBytes: 1_000_000 })
  await t.rejects(asked, { code: 'shape.expression' })
})
