import { mkdirSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { connect } from 'node:net'
import t from 'tap'
import { configFolder, testGateway } from '../../support/gateway.ts'

t.test('a client that leaves before its page begins is no fault of the gateway', async t => {
  const folder = await configFolder({ gateway: { console: { root: 'console' } } })
  mkdirSync(join(folder, 'console'))
  writeFileSync(join(folder, 'console/index.html'), '<!doctype html><title>console</title>')
  const gateway = await testGateway(t.after, folder)
  const { port } = new URL(gateway.url)
  for (let visitor = 0; visitor < 5; visitor++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end('GET /a/page HTTP/1.1\r\nHost: console.test\r\nAccept: text/html\r\n\r\n', () =>
      socket.resetAndDestroy()
    )
    await once(socket, 'close')
  }
  await gateway.logged(line => line['msg'] === 'request' && line['status'] === 499)
  t.equal((await gateway.call('/a/page', { headers: { accept: 'text/html' } })).status, 200)
  t.same(
    gateway.log.filter(({ level }) => level === 'error'),
    [],
    'nothing is logged as an error'
  )
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
  t.notMatch(
    metrics,
    /console_gateway_errors_total\{code="gateway.fault"\}/,
    'and nothing is counted'
  )
})
