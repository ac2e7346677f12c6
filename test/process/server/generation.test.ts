/** What a generation that cannot be built leaves behind: nothing. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../src/config/read/load.ts'
import { createPublicServer } from '../../../src/process/server.ts'
import { createLogger } from '../../../src/services/services.ts'
import { configFolder } from '../../support/gateway.ts'

const source = {
  outcomes: [],
  kind: 'upstream-login',
  upstream: 'b',
  login: { path: '/login' }
}

async function opened(t: Test) {
  const folder = await configFolder({
    gateway: { ops: { role: 'admin' } },
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: { any: { path: '/api/any', access: 'public', upstream: 'b' } }
    }
  })
  const config = loadConfig(folder, {})
  const log = createLogger({ level: 'fatal', format: 'json' })
  const server = createPublicServer(config, log)
  t.teardown(() => server.close())
  let apps = 0
  const count = (message: unknown) => {
    const { fastify } = message as { readonly fastify: FastifyInstance }
    apps++
    fastify.addHook('onClose', () => void apps--)
  }
  subscribe('fastify.initialization', count)
  t.teardown(() => unsubscribe('fastify.initialization', count))
  const left = () => ({
    apps,
    upstreams: server.services.upstreams.addresses().map(({ upstream }) => upstream)
  })
  return { config, server, left }
}

t.test('a generation has its app and upstreams until it is retired', async t => {
  const { config, server, left } = await opened(t)
  const built = await server.create(1, config)
  t.same(left(), { apps: 1, upstreams: ['b'] })
  await built.end()
  t.same(left(), { apps: 0, upstreams: [] })
})

t.test('one that cannot be built leaves nothing open', async t => {
  const { config, server, left } = await opened(t)
  const { gateway, routes } = config
  const { any } = routes.routes
  const sources = { b: source, missing: { ...source, upstream: 'missing' } }
  const missing = { message: 'there is no upstream "missing"' }
  const withRoute = (other: object) => ({
    ...config,
    routes: { ...routes, routes: { any, other } }
  })
  for (const [faulty, error] of [
    [{ ...config, gateway: { ...gateway, login: { ...gateway.login, sources } } }, missing],
    [withRoute({ ...any, upstream: 'missing' }), missing],
    // It fails as soon as its app starts: two on one path.
    [withRoute(any ?? {}), { code: 'FST_ERR_DUPLICATED_ROUTE' }]
  ] as const) {
    await t.rejects(server.create(1, faulty as never), error)
    t.same(left(), { apps: 0, upstreams: [] })
  }
})
