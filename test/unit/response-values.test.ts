import t from 'tap'
import { plainMessage, valuesAt } from '../../src/login/response-values.ts'

const at = (content: unknown, path: string) => valuesAt(content, path.split('.'))

t.test('a path goes on in each item of a list, or in one where the name is its number', async t => {
  const content = { user: { roles: [{ key: 'a' }, { key: ['b', 'c'] }, { other: 1 }, 'x', null] } }
  t.same(at(content, 'user.roles.key'), ['a', ['b', 'c']])
  t.same(at(content, 'user.roles.1.key'), [['b', 'c']])
  t.same(at(content, 'user.roles.9.key'), [])
  t.same(at(content, 'user.roles'), [content.user.roles])
  t.same(at({ list: [[{ a: 1 }], { a: 2 }] }, 'list.a'), [2], 'a list in a list is no item')
  t.same(at({ 0: { a: 1 } }, '0.a'), [1], 'a number may be a member’s name')
})

t.test('only own members are there', async t => {
  for (const path of ['constructor', 'toString.name', '__proto__', 'list.length', 'list.map']) {
    t.same(at({ list: [1] }, path), [], path)
  }
  t.same(at(null, 'a'), [])
  t.same(at('text', 'length'), [])
})

t.test('a message is one bounded line of plain text', async t => {
  t.equal(plainMessage(['验证码错误']), '验证码错误')
  t.equal(plainMessage([1, 'second']), 'second')
  t.equal(plainMessage(['a\r\n\tb\u202ec\u0000 \ud800 d ']), 'a b c d')
  t.equal(plainMessage(['🔑'.repeat(1000)]), '🔑'.repeat(100))
  t.equal(plainMessage([`x${'🔑'.repeat(1000)}`]), `x${'🔑'.repeat(99)}\ufffd`)
  t.equal(plainMessage(['1 < 2 & 3']), '1 < 2 & 3')
  for (const none of ['', ' \n', '<b>x</b>', 'a <!-- x', 'a </p>', '<?xml', 7, null, {}]) {
    t.equal(plainMessage([none]), undefined, JSON.stringify(none))
  }
  t.equal(plainMessage([]), undefined)
})
