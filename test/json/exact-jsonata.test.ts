import jsonata from 'jsonata'
import fc from 'fast-check'
import t from 'tap'
import { orderKey } from '../../src/json/decimal.ts'
import { parseKeepingDigits } from '../../src/json/digits.ts'
import { isAboutLongNumber, makeExact } from '../../src/json/exact-jsonata.ts'

const run = async (expression: string, input: string): Promise<string> =>
  JSON.stringify(await makeExact(jsonata(expression)).evaluate(parseKeepingDigits(input)))

const orders = '[{"id":1234567890123456790,"n":1},{"id":1234567890123456789,"n":2},{"id":7,"n":3}]'
const id = '9007199254740993'

t.test('numbers that no double holds move as they are', async t => {
  t.equal(
    await run('$', `{"id":${id},"tiny":1e-400,"huge":1e400}`),
    `{"id":${id},"tiny":1e-400,"huge":1e400}`
  )
  t.equal(await run('{"ids": $.id}', orders), '{"ids":[1234567890123456790,1234567890123456789,7]}')
  t.equal(await run('$string(id) & "!"', `{"id":${id}}`), `"${id}!"`)
  t.equal(
    await run('$ ~> |list|{"seen":true}|', `{"list":[{"id":${id}}]}`),
    `{"list":[{"id":${id},"seen":true}]}`
  )
  t.equal(await run('$type(id)', `{"id":${id}}`), '"number"')
  t.equal(await run('id ? "yes" : "no"', `{"id":${id}}`), '"yes"')
})

t.test('numbers that no double holds compare by their text', async t => {
  const two = '{"a":1234567890123456789,"b":1234567890123456790,"c":1234567890123456789}'
  const claims = {
    'a = c': true,
    'a = b': false,
    'a != b': true,
    'a = "1234567890123456789"': true,
    '"1234567890123456790" = a': false,
    'a in [b, c]': true,
    'a in [b]': false,
    'a in nothing': false,
    'a = nothing': false,
    '[a, {"x": b}] = [c, {"x": b}]': true,
    '[a, {"x": b}] = [b, {"x": b}]': false,
    '$count($distinct([a, b, c])) = 2': true
  }
  for (const [expression, expected] of Object.entries(claims)) {
    t.equal(await run(expression, two), String(expected), expression)
  }
  t.equal(await run('$[id = "1234567890123456790"].n', orders), '1')
})

t.test('numbers that no double holds are ordered by their value', async t => {
  const two =
    '{"a":1234567890123456789,"b":1234567890123456790,"minus":-1234567890123456789,"huge":1e400}'
  for (const expression of [
    'a < b',
    'a <= b',
    'b > a',
    'b >= a',
    'a <= a',
    'a > 5',
    'minus < a',
    'minus < -5',
    'huge > b'
  ]) {
    t.equal(await run(expression, two), 'true', expression)
  }
  t.equal(await run('a < nothing', two), undefined)
  t.equal(await run('$^(id).n', orders), '[3,2,1]')
  t.equal(await run('$^(>id).n', orders), '[1,2,3]')
  t.equal(await run('$sort($.id)', orders), '[7,1234567890123456789,1234567890123456790]')
  t.equal(await run('$.id ~> $sort', orders), '[7,1234567890123456789,1234567890123456790]')
  t.equal(await run('$sort($, function($l, $r) { $l.n < $r.n }).n', orders), '[3,2,1]')
})

t.test('numbers are not sorted among texts, nor beside a number that no double holds', async t => {
  const input = '{"items":[{"v":1},{"v":"x"},{"v":null},{}],"id":12345678901234567890}'
  const codeOf = async (expression: string) =>
    await run(expression, input).catch((error: unknown) => (error as { code: string }).code)
  t.equal(await codeOf('items[[0..1]]^(v)'), 'T2007')
  t.equal(await codeOf('items[[1..2]]^(v)'), 'T2008')
  t.equal(await codeOf('[id, "x"]^($)'), 'T2007')
  t.equal(await codeOf('items[[1, 3]]^(>v)'), '[{"v":"x"},{}]')
  t.equal(await codeOf('[{"a":1,"b":id},{"a":1,"b":2}]^(a, b).b'), '[2,12345678901234567890]')
  t.equal(await codeOf('[{"a":1,"b":id},{"a":1,"b":2}]^(a, >b).b'), '[12345678901234567890,2]')
})

t.test('a number that no double holds has no members', async t => {
  const input = `{"a":{"b":${id}},"list":[1,[${id}]],"id":${id}}`
  t.equal(await run('a.**', input), `[{"b":${id}},${id}]`)
  t.equal(await run('id.**', input), id)
  t.equal(await run('a.*', input), id)
  t.equal(await run('a.*.*', input), undefined)
  t.equal(await run('list.*', input), id)
  t.equal(await run('$count(**)', input), '6')
  t.equal(await run('**[$type($) = "string"]', input), undefined)
  t.equal(await run('$keys(id)', input), undefined)
  t.equal(await run('$keys($)', input), '["a","list","id"]')
})

t.test('$number keeps the digits of a text', async t => {
  const input = `{"text":"1234567890123456789","zeros":"-0001234567890123456789","id":${id}}`
  t.equal(await run('$number(text)', input), '1234567890123456789')
  t.equal(await run('$number(zeros)', input), '-1234567890123456789')
  t.equal(await run('text.$number()', input), '1234567890123456789')
  t.equal(await run('$number(text) > id', input), 'true')
  t.equal(await run('$number("0.1234567890123456789")', input), '0.1234567890123456789')
  t.equal(await run('$number(id)', input), id, 'and of a number')
  t.equal(await run('id.$number()', input), id)
  t.equal(await run('$number($number(text))', input), '1234567890123456789')
  await t.rejects(run('$number(text) + 1', input), { code: /^T200[12]$/ })
  for (const wrong of ['"x"', '""', '"1e400"', '" 1"', '"0x"', 'null', '[]', '{}']) {
    await t.rejects(run(`$number(${wrong})`, input), wrong)
  }
})

t.test('arithmetic on them fails, and never rounds', async t => {
  const input = `{"id":${id},"list":[1,${id}]}`
  for (const expression of [
    'id + 1',
    '1 + id',
    '-id',
    'id % 2',
    '$sum(list)',
    '$max(list)',
    '$abs(id)',
    '$round(id)',
    '[1..id]',
    '$fromMillis(id)',
    'id & 1 & (id * 2)'
  ]) {
    await t.rejects(
      run(expression, input).catch((error: unknown) => {
        throw new Error(String(isAboutLongNumber(error)))
      }),
      { message: 'true' },
      expression
    )
  }
  await t.rejects(
    run('"a" + 1', input).catch((error: unknown) => {
      throw new Error(String(isAboutLongNumber(error)))
    }),
    { message: 'false' }
  )
  t.equal(
    await run('$sum(list[$ < 100])', input),
    '1',
    'short ones beside them are numbers as always'
  )
})

t.test('an order key sorts as the numbers do', async t => {
  const sorted = [
    '-1e500',
    '-1e400',
    '-12.5',
    '-12',
    '-1.05',
    '-1',
    '-1e-400',
    '0',
    '5e-400',
    '0.1',
    '0.10000000000000000001',
    '1',
    '1.5',
    '9',
    '10',
    '1234567890123456789',
    '1234567890123456790',
    '1e400',
    '1.1e400'
  ]
  t.same(
    sorted.toReversed().toSorted((a, b) => (orderKey(a) < orderKey(b) ? -1 : 1)),
    sorted
  )
  t.equal(orderKey('1.0'), orderKey('10e-1'))
  t.equal(orderKey('-0'), orderKey('0.0'))
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      (a, b) => {
        const [left, right] = [orderKey(String(a)), orderKey(String(b))]
        return a < b ? left < right : a > b ? left > right : left === right
      }
    )
  )
})

t.test('a plain input gives what JSONata alone gives', async t => {
  const input = {
    list: [
      { id: 3, s: 'c' },
      { id: 1, s: 'a' },
      { id: 2, s: 'b' }
    ],
    n: 5,
    nested: [1, [2, { deep: [[3], []] }], null, {}],
    5: 'five'
  }
  for (const expression of [
    'list^(id).s',
    'list^(>s).id',
    '$sort(list.id)',
    'list[id > 1].s',
    'list[id = 2]',
    'n in list.id',
    'n != 5',
    '$type(list)',
    '$ ~> |list|{"n":1}|',
    '$sort(list, function($a, $b) { $a.id > $b.id }).s',
    'n < 6 and n >= 5',
    '*',
    '**',
    '*[0]',
    '*[]',
    'list.*',
    'list.*[1]',
    'list.*[]',
    'list[0].*',
    'list[0].*[]',
    'list[0].*[0][]',
    '*.id',
    '**.id',
    '**[id > 1].s',
    '**[]',
    'nested.**',
    'nested.*',
    'nothing.*',
    'nothing.**',
    'n.*',
    'n.**',
    'n.*[]',
    '(list; *)',
    '$.*{$type($): $count($)}',
    'list.*.%.id',
    'list@$l.*[$l.id = 1]',
    'list#$i.*[$i = 1]',
    'list.{"all": *}',
    'list.[*]',
    '*^(id)',
    'list^(id, s).s',
    '$keys($)',
    '$keys(list)',
    '$keys(list[0])',
    'list[0].{"only": 1}.$keys()',
    '$keys(n)',
    '$keys(nothing)',
    'nested.$keys($)',
    '$number("5") + $number(true) + $number("0x1F") + $number("0b11") + $number("-1.50e1")',
    '$number("007")',
    '$number(nothing)',
    'n.$number()',
    '["1", "2"] ~> $map($number)'
  ]) {
    t.equal(
      await run(expression, JSON.stringify(input)),
      JSON.stringify(await jsonata(expression).evaluate(input)),
      expression
    )
  }
})
