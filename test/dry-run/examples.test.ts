import t from 'tap'
import { describeFault } from '../../src/config/schema/faults.ts'
import { loadConfig } from '../../src/config/load/load.ts'
import { exampleFaults } from '../../src/dry-run/examples.ts'
import { textFolder } from '../support/config-files.ts'

const shaped = (example: string, file = '{}') => ({
  'gateway.yaml': 'server: { hosts: [console.example.com] }',
  'answer.json': file,
  'routes.yaml': `
upstreams: { b: { url: http://b.internal } }
routes: { r: { path: /r, upstream: b, shape: s } }
shapes:
  s:
    - open: code-data
    - each:
        - rename: { a: title }
    - wrap: list
examples:
  e:
    shape: s
    ${example}
`
})

t.test(
  'examples of shapes are tried, and one that fails is a fault with its line and the first difference',
  async t => {
    const check = async (example: string, file?: string) => {
      const folder = textFolder(t.after, shaped(example, file))
      return (await exampleFaults(loadConfig(folder, {})))
        .map(fault => describeFault(fault).replace(folder, ''))
        .join('\n')
    }
    t.equal(
      await check(
        'input: { code: 0, data: [{ a: x }] }\n    output: { ok: true, code: 0, message: OK, success: true, data: [{ title: x }], total: 1 }'
      ),
      ''
    )
    t.equal(await check('input: { code: 404 }\n    status: 404'), '')
    t.equal(await check('inputFile: answer.json\n    status: 502', '{"code": 7}'), '')
    const withMark = '\ufeff{"code": 7}'
    t.equal(await check('inputFile: answer.json\n    status: 502', withMark), '')
    t.match(
      await check('input: { code: 0, data: [{ a: x }] }\n    output: { data: [{ title: y }] }'),
      '/routes.yaml:14 examples.e.output: at data.0.title: expected "y", the shape gives "x"'
    )
    t.match(
      await check(
        'input: { code: 0, data: [] }\n    output: { ok: true, code: 0, message: OK, success: true, data: [], total: 0, more: 1 }'
      ),
      'examples.e.output: at more: expected 1, the shape gives nothing'
    )
    t.match(
      await check('input: { code: 404 }\n    output: {}'),
      'examples.e.output: the shape gives a failure with the status 404'
    )
    t.match(
      await check('input: { code: 404 }\n    status: 403'),
      'examples.e.status: the shape gives a failure with the status 404'
    )
    t.match(
      await check('input: { code: 0 }\n    status: 404'),
      'examples.e.status: the shape takes this response for a success'
    )
    t.match(
      await check('inputFile: answer.json\n    status: 404', '{'),
      'examples.e.inputFile: not valid JSON'
    )
    const answer = (id: string) =>
      `{ ok: true, code: 0, message: OK, success: true, data: [{ title: ${id} }], total: 1 }`
    const given = 'input: { code: 0, data: [{ a: 1234567890123456789 }] }\n    output: '
    t.equal(await check(given + answer('1234567890123456789')), '')
    t.match(
      await check(given + answer('1234567890123456790')),
      'at data.0.title: expected 1234567890123456790, the shape gives 1234567890123456789'
    )
    const file = '{"code":0,"data":[{"a":1234567890123456789}]}'
    t.equal(
      await check(`inputFile: answer.json\n    output: ${answer('1234567890123456789')}`, file),
      ''
    )
    t.match(
      await check('inputFile: nowhere.json\n    status: 404'),
      'examples.e.inputFile: the file cannot be read (ENOENT)'
    )
  }
)
