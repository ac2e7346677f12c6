import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { types } from '../../src/cli/describe.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

t.test('openapi and types are written to standard output or a file, from config alone', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
  })
  const { code, out } = await run(['openapi', '-c', folder])
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    openapi: '3.1.0',
    paths: { '/api/account/profile': { get: { operationId: 'getProfile' } } }
  })
  const output = join(folder, 'gateway.d.ts')
  t.equal(
    await types.run({
      config: folder,
      gateway: { folder },
      json: false,
      rest: [],
      values: { output }
    }),
    0
  )
  t.match(readFileSync(output, 'utf8'), /^ {2}'GET \/api\/account\/profile': \{$/m)
})
