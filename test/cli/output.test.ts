import { PassThrough } from 'node:stream'
import t from 'tap'
import { tableText } from '../../src/cli/output.ts'

t.test('columns stand under each other where characters are wide', t => {
  const lines = [
    ['USER', 'ID'],
    ['张三丰', '1'],
    ['alice', '2']
  ]
  const text = tableText({ lines, none: '' }, new PassThrough())
  t.equal(text, 'USER    ID\n张三丰  1\nalice   2\n')
  t.end()
})
