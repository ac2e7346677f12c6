import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

t.test('openapi is written to standard output or a file, from config alone', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
  })
  const { code, out } = await run(['openapi', '-c', folder])
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    openapi: '3.1.0',
    paths: { '/api/account/profile': { get: { operationId: 'getProfile' } } }
  })
  const output = join(folder, 'openapi.json')
  t.same(await run(['openapi', '-c', folder, '-o', output]), { code: 0, out: '', err: '' })
  t.equal(readFileSync(output, 'utf8'), out)
})
