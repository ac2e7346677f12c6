import { PassThrough } from 'node:stream'
import t from 'tap'
import { table } from '../../src/cli/output.ts'

t.test('columns stand under each other where characters are wide', t => {
  const rows = [
    ['张三丰', '1'],
    ['alice', '2']
  ]
  t.equal(
    table(rows, { USER: ([user]) => user ?? '', ID: ([, id]) => id ?? '' }, new PassThrough()),
    'USER    ID\n张三丰  1\nalice   2\n'
  )
  t.end()
})
