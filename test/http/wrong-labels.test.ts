/** Labels of a body that are wrong beat no readable body. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

let headers: Record<string, string> = {}
const backend = await testUpstream(t.after, (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', ...headers })
  response.end('{"data":{"name":"张三"}}')
})
const shape = 'unwrapped'
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { b: { url: backend.url } },
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      shaped: { path: '/shaped', access: 'public', upstream: 'b', shape },
      parts: {
        path: '/parts',
        access: 'public',
        parts: { who: { upstream: 'b', rewrite: '/', into: 'who', shape } }
      }
    }
  }
})

for (const label of [
  { 'content-encoding': 'UTF-8' },
  { 'content-encoding': 'gzip' },
  { 'content-type': 'application/json; charset=utf8mb4' },
  { 'content-type': 'application/json;charset=ISO-8859-1' }
] as Array<Record<string, string>>) {
  t.test(`case 2: it is read as it is: ${JSON.stringify(label)}`, async t => {
    headers = label
    for (let count = 0; count < 2; count++) {
      const { status, json, headers: sent } = await gateway.call('/shaped')
      t.same([status, json], [200, { name: '张三' }])
      t.equal(sent.get('content-encoding'), null)
      t.equal(sent.get('content-type'), 'application/json; charset=utf-8')
    }
    t.same((await gateway.call('/parts')).json, { who: { name: '张三' } })
  })
}

t.test('case 2: it is one line of the log for the route', async t => {
  const lines = gateway.log.filter(({ event }) => event === 'shape.label')
  t.match(lines, [{ route: 'shaped', label: /content coding "utf-8" is not known/ }])
  t.equal(lines.length, 1)
})

t.end()
