import t from 'tap'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

t.test('openapi is made from config alone', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
  })
  const { code, out } = await run(['openapi', '-c', folder])
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    openapi: '3.1.0',
    paths: { '/api/account/profile': { get: { operationId: 'getProfile' } } }
  })
})
