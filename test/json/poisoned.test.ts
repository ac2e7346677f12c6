import t from 'tap'
import { isPoisoned } from '../../src/json/poisoned.ts'

const poisoned = (text: string) => isPoisoned(text, JSON.parse(text))

t.test('a member that would replace a prototype is found at any depth, escaped or not', async t => {
  const bodies = [
    '{"__proto__":{"admin":true}}',
    '{"\\u005f_proto__":1}',
    '[1,{"a":[{"__proto__":null}]}]',
    '{"constructor":{"prototype":{"admin":true}}}',
    '{"const\\u0072uctor":{"prototype":1}}'
  ]
  for (const body of bodies) t.ok(poisoned(body), body)
})

t.test('texts and members that replace nothing pass', async t => {
  const bodies = [
    '"__proto__"',
    '{"password":"__proto__"}',
    '{"constructor":"Gaudí"}',
    '{"constructor":{"name":"Gaudí"}}',
    '{"prototype":1}',
    'null',
    '"\\u00e9"'
  ]
  for (const body of bodies) t.notOk(poisoned(body), body)
})

t.test('nesting costs no stack', async t => {
  const depth = 2000
  t.ok(poisoned(`${'[['.repeat(depth)}{"__proto__":1}${']]'.repeat(depth)}`))
})
