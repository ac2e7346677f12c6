import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { stringify } from 'yaml'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { loadConfig } from '../../../src/config/read/load.ts'
import { tryConfig } from '../../../src/dry-run/try-config.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'
import { seed } from '../../support/seed.ts'

const texts = (url: string) => ({
  'routes.yaml': stringify({
    upstreams: { b: { url } },
    aliases: { '/api/other': '/api/a' },
    routes: {
      a: { path: '/api/a', access: 'public', upstream: 'b', rewrite: '/inner/a' },
      s: { path: '/api/s/*', access: { roles: ['admin'] }, upstream: 'b', shape: 'x' }
    },
    shapes: { x: [{ unwrap: 'data' }, { wrap: 'list' }] },
    expect: {
      'needs-session': { request: 'GET /api/s/1', status: 401 },
      'goes-there': { request: 'GET /api/other', upstreamPath: '/inner/a' }
    }
  }),
  'limits.yaml': stringify({
    sizes: { body: '2MiB' },
    limits: {
      'signed-in': { by: 'user', max: 100_000, window: '1m' },
      'sign-in-address': { by: 'address', max: 1000, window: '1m', routes: ['login'] }
    }
  })
})

const signs = '\n|:| |-|"|{|[|\t|#|\0|&a |*a|!!js |<<: '.split('|')
const noise = fc.oneof(fc.constantFrom(...signs), fc.string({ unit: 'binary', maxLength: 12 }))

/** What an editor, a disk or a hand may make of a text. */
const damaged = (text: string) => {
  const place = fc.nat(text.length)
  return fc.oneof(
    // Half written.
    place.map(end => text.slice(0, end)),
    place.map(begin => text.slice(begin)),
    fc
      .tuple(place, fc.nat(40), fc.oneof(fc.constant(''), noise))
      .map(([at, length, put]) => text.slice(0, at) + put + text.slice(at + length)),
    fc.tuple(fc.nat(20), fc.nat(20)).map(([from, to]) => {
      const lines = text.split('\n')
      lines.splice(to, 0, ...lines.splice(from, 1))
      return lines.join('\n')
    })
  )
}

t.test('whatever the files hold, they are either taken whole or change nothing', async t => {
  const backend = await testUpstream(t.after)
  const good = texts(backend.url)
  const folder = await configFolder({ routes: {}, limits: {} })
  const put = (files: Partial<typeof good>) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  }
  put(good)
  const gateway = await testGateway(t.after, folder)
  const cookie = await gateway.signIn()
  const behaviour = async () => {
    const began = backend.seen.length
    const statuses = [
      await gateway.call('/api/a'),
      await gateway.call('/api/other'),
      await gateway.call('/api/s/1'),
      await gateway.call('/api/s/1', { cookie }),
      await gateway.call('/api/account/profile', { cookie })
    ].map(({ status, text }) => `${status} ${text.replace(/"requestId":"[^"]*"/, '')}`)
    return [...statuses, ...backend.seen.slice(began).map(({ url }) => url)]
  }
  const sound = await behaviour()
  const isSound = async () => {
    try {
      return (await tryConfig(loadConfig(folder, {}))).length === 0
    } catch (error) {
      if (error instanceof ConfigError) return false
      throw error
    }
  }
  let refused = 0
  await fc.assert(
    fc.asyncProperty(
      fc
        .constantFrom('routes.yaml' as const, 'limits.yaml' as const)
        .chain(name => damaged(good[name]).map(text => ({ [name]: text }))),
      async files => {
        put(files)
        const { outcome } = await gateway.reload('operator')
        if (outcome === 'refused') {
          refused++
          t.notOk(await isSound())
          t.same(await behaviour(), sound)
        } else {
          t.ok(await isSound())
        }
        put(good)
        t.not((await gateway.reload('operator')).outcome, 'refused')
        t.equal((await gateway.ops('/readyz')).status, 200)
      }
    ),
    { numRuns: 40, seed }
  )
  t.same(await behaviour(), sound)
  t.ok(refused > 10, `${refused} were refused`)
})

t.test('a file that is written in pieces is taken once, and whole', async t => {
  const backend = await testUpstream(t.after)
  const routes = (count: number) =>
    stringify({
      upstreams: { b: { url: backend.url } },
      routes: Object.fromEntries(
        Array.from({ length: count }, (_, n) => [
          `r${n}`,
          { path: `/api/r${n}`, access: 'public', upstream: 'b' }
        ])
      )
    })
  const folder = await configFolder({ gateway: { reload: { watch: true } } })
  writeFileSync(join(folder, 'routes.yaml'), routes(1))
  const gateway = await testGateway(t.after, folder)
  const whole = routes(20)
  // Any piece that ends with a line is a config of its own.
  for (let end = 0; end < whole.length; end = whole.indexOf('\n', end) + 1 || whole.length) {
    writeFileSync(join(folder, 'routes.yaml'), whole.slice(0, end))
  }
  writeFileSync(join(folder, 'routes.yaml'), whole)
  await gateway.logged(({ event }) => event === 'config.reloaded')
  t.equal(await gateway.status('/api/r19'), 200)
  t.equal(gateway.log.filter(({ event }) => String(event).startsWith('config.')).length, 1)
})
