/** Hooks that some responses would bypass are refused at build; all others run for every response. */
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { refuseBypassedHooks } from '../../../src/app/hooks/bypassed-hooks.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { createOfflineApp } from '../../../src/dry-run/offline-app.ts'
import { textFolder } from '../../support/config-files.ts'

const refused = { message: /would not run for responses that are sent by sendBody/ }

t.test('a hook before, after or within a scope that sends directly is refused', async t => {
  for (const name of ['onSend', 'preSerialization'] as const) {
    const app = Fastify()
    const markDirect = refuseBypassedHooks(app)
    const hook = async () => {}
    await app.register(async sibling => {
      sibling.addHook(name, hook)
    })
    await app.register(async scope => {
      markDirect(scope)
      t.throws(() => scope.addHook(name, hook), refused, 'in it')
      t.throws(() => app.addHook(name, hook), refused, 'around it')
      await scope.register(async inner => {
        t.throws(() => inner.addHook(name, hook), refused, 'within it')
      })
      t.throws(() => scope.get('/x', { [name]: hook, handler: () => {} }), refused, 'of a route')
      scope.addHook('onRequest', hook)
      scope.addHook('onResponse', hook)
    })
    await app.register(async scope => {
      scope.addHook(name, hook)
      t.throws(() => markDirect(scope), refused, 'before it is marked')
    })
    await app.close()
  }
})

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
  const app = await createOfflineApp(loadConfig(folder, {}), {
    // No limits, no sign-in: neither is asked.
    counts: {} as never,
    lockouts: {} as never,
    source: {} as never,
    watch,
    onUpstreamRequest: () => ({ a: 1 })
  })
  t.after(() => app.close())
  return app
}

t.test('the app does not build with a hook that its upstreams’ routes would bypass', async t => {
  for (const name of ['onSend', 'preSerialization'] as const) {
    await t.rejects(
      offline(t, app => {
        app.addHook(name, async () => {})
      }),
      refused
    )
  }
})

t.test('onResponse hooks run for every response of a known or unknown route', async t => {
  const seen: string[] = []
  const app = await offline(t, instance => {
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
      address: '192.0.2.1'
    })
    t.equal(response.status, status, `${method} ${target}`)
    t.equal(seen.at(-1), `${method} ${target} ${status}`)
  }
  t.equal(seen.length, requests.length)
})
