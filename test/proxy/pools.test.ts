/** Connections to back-ends, as generations share them. */
import t, { type Test } from 'tap'
import { loadConfig } from '../../src/config/read/load.ts'
import { createPools } from '../../src/proxy/pools.ts'
import { textFolder } from '../support/config-files.ts'

const upstreamOf = (t: Test, text: string) => {
  const { routes } = loadConfig(
    textFolder(t.after, { 'routes.yaml': `upstreams: { b: ${text} }` }),
    {}
  )
  const { b } = routes.upstreams
  if (b === undefined) throw new Error('no upstream')
  return b
}

t.test(
  'generations with the same upstream share its pool, and the last that gives it back closes it',
  async t => {
    const pools = createPools()
    t.after(() => pools.close())
    const config = upstreamOf(t, '{ url: http://127.0.0.1:1 }')
    const [old, young] = [pools.lease(), pools.lease()]
    const pool = old.upstream('b', config)
    t.equal(old.upstream('b', config), pool, 'in one generation')
    t.equal(young.upstream('b', structuredClone(config)), pool, 'in the next one')
    await old.release()
    const third = pools.lease()
    t.equal(third.upstream('b', config), pool, 'the young one still has it')
    await young.release()
    await third.release()
    const fourth = pools.lease()
    t.not(fourth.upstream('b', config), pool, 'it was closed')
    await fourth.release()
  }
)

t.test('another name, config or authority is another pool', async t => {
  const pools = createPools()
  t.after(() => pools.close())
  const config = upstreamOf(t, '{ url: http://127.0.0.1:1 }')
  const lease = pools.lease()
  const all = [
    lease.upstream('b', config),
    lease.upstream('c', config),
    lease.upstream('b', { ...config, connections: 1 }),
    lease.upstream('b', upstreamOf(t, '{ url: https://127.0.0.1:1 }'))
  ]
  t.equal(new Set(all).size, all.length)
})
