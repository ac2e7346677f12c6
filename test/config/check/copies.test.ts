import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

async function faultsOf(route: object): Promise<string[]> {
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: { orders: { path: '/api/orders', upstream: 'b', ...route } }
    }
  })
  try {
    loadConfig(folder, {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults
      .map(({ path, message }) => `${path}: ${message}`)
      .filter(fault => fault.startsWith('routes.orders.'))
  }
}

t.test('responses are shared within sessions alone, on routes with such requests', async t => {
  const methods = ['GET', 'POST']
  t.same(await faultsOf({ methods, coalesce: true, doubleClicks: 'share' }), [])
  t.match(await faultsOf({ methods, coalesce: true, doubleClicks: 'share', access: 'public' }), [
    /routes.orders.coalesce: needs `access: session` or roles/,
    /routes.orders.doubleClicks: needs `access: session` or roles/
  ])
  t.match(await faultsOf({ doubleClicks: 'share' }), [/takes GET alone/])
  t.match(await faultsOf({ coalesce: true, methods: ['POST'] }), [/does not take GET/])
})

t.test('copies belong to sessions; a fallback says what to answer', async t => {
  const fallback = { lastGood: true, body: [] }
  t.same(await faultsOf({ cache: 'private', fallback }), [])
  t.match(await faultsOf({ cache: 'private', fallback, access: 'public' }), [
    /routes.orders.cache: needs `access: session` or roles/,
    /routes.orders.fallback: needs `access: session` or roles/
  ])
  t.same(await faultsOf({ fallback: { body: [] }, access: 'public' }), [])
  t.match(await faultsOf({ fallback: {} }), [/needs `lastGood: true`, `body` or `byRole`/])
  t.match(await faultsOf({ fallback, methods: ['POST'] }), [/does not take GET/])
})
