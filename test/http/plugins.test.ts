/** Plugins of Fastify work: their hooks run for every response. */
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/read/load.ts'
import { createDryApp } from '../../src/dry-run/dry-app.ts'
import { textFolder } from '../support/config-files.ts'

const routes = `
upstreams: { backend: { url: http://127.0.0.1:1 } }
routes:
  plain: { path: /api/plain, access: public, upstream: backend, methods: [GET, POST] }
  shaped: { path: /api/shaped, access: public, upstream: backend, shape: same }
  mine: { path: /api/mine, upstream: backend }
shapes: { same: [{ pick: [a] }] }
`

async function offline(t: Test, watch: (app: FastifyInstance) => void) {
  const folder = textFolder(t.after, {
    'gateway.yaml':
      'session: { cookie: { secure: false } }\nserver: { hosts: [console.example] }\n',
    'routes.yaml': routes,
    'limits.yaml': 'limits: {}\n'
  })
  const app = await createDryApp(loadConfig(folder, {}), { watch })
  t.after(() => app.close())
  return app
}

t.test('onSend and onResponse hooks of a plugin run for every response', async t => {
  const seen: string[] = []
  const app = await offline(t, instance => {
    instance.addHook('onSend', async (_request, reply) => {
      reply.header('x-plugin', 'was here')
    })
    instance.addHook('onResponse', async ({ method, url }, { statusCode }) => {
      seen.push(`${method} ${url} ${statusCode}`)
    })
  })
  const requests: ReadonlyArray<readonly [method: string, target: string, status: number]> = [
    ['GET', '/api/plain', 200],
    ['HEAD', '/api/plain', 200],
    ['POST', '/api/plain', 200],
    ['GET', '/api/shaped', 200],
    ['GET', '/api/mine', 401],
    ['DELETE', '/api/plain', 405],
    ['GET', '/api/nothing', 404],
    ['GET', '/a//b', 400]
  ]
  for (const [method, target, status] of requests) {
    const hasBody = method === 'POST'
    const response = await app.ask({
      method,
      target,
      headers: {
        host: 'console.example',
        ...(hasBody && { 'content-type': 'application/json' })
      },
      ...(hasBody && { body: '{}' }),
      address: '192.0.2.1',
      answer: { a: 1 }
    })
    t.equal(response.status, status, `${method} ${target}`)
    // The router answers a target that it cannot decode before any hook.
    if (status !== 400) t.equal(response.headers['x-plugin'], 'was here', `${method} ${target}`)
    t.equal(seen.at(-1), `${method} ${target} ${status}`)
  }
  t.equal(seen.length, requests.length)
})
