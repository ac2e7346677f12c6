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

t.test('a fallback and the browser’s cache are for reads of an upstream', async t => {
  t.same(await faultsOf({ fallback: { body: [] }, cache: 'browser' }), [])
  t.same(await faultsOf({ fallback: { body: [] }, access: 'public' }), [])
  t.match(await faultsOf({ fallback: {} }), [/^routes.orders.fallback: the key "body" is missing/])
  t.match(await faultsOf({ fallback: { body: [] }, methods: ['POST'] }), [/does not take GET/])
  t.match(await faultsOf({ cache: 'browser', methods: ['POST'] }), [/does not take GET/])
  t.match(await faultsOf({ cache: 'browser', access: 'public' }), [/passes as it is/])
})
