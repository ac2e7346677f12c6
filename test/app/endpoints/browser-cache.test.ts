import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

const controls: Readonly<Record<string, string | undefined>> = {
  '/fresh': 'public, max-age=60, s-maxage=600, immutable',
  '/fields': 'no-cache="set-cookie", max-age="5"',
  '/none': undefined,
  '/never': 'no-store'
}

t.test('`cache: browser`: the browser may keep it for its user, shared caches may not', async t => {
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const control = controls[url]
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'vary': 'Accept-Language',
        'age': '3',
        ...(control !== undefined && { 'cache-control': control })
      })
      .end('{"list":[1]}')
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      shapes: { list: [{ unwrap: 'list' }, { wrap: 'list' }] },
      routes: {
        kept: { path: '/api/kept/*', upstream: 'b', rewrite: '/*', cache: 'browser' },
        shaped: {
          path: '/api/shaped/*',
          upstream: 'b',
          rewrite: '/*',
          cache: 'browser',
          shape: 'list'
        },
        other: { path: '/api/other/*', upstream: 'b', rewrite: '/*' },
        open: { path: '/api/open/*', access: 'public', upstream: 'b', rewrite: '/*' }
      }
    }
  })
  const cookie = await gateway.signIn()
  const headersOf = async (path: string) => {
    const { status, headers } = await gateway.call(path, { cookie })
    t.equal(status, 200)
    return [headers.get('cache-control'), headers.get('vary')]
  }
  t.same(await headersOf('/api/kept/fresh'), [
    'private, max-age=60, immutable',
    'Accept-Language, Cookie'
  ])
  t.same(await headersOf('/api/kept/fields'), [
    'private, no-cache, max-age="5"',
    'Accept-Language, Cookie'
  ])
  t.same(await headersOf('/api/kept/never'), ['private, no-store', 'Accept-Language, Cookie'])
  t.equal((await headersOf('/api/kept/none'))[0], 'no-store')
  t.equal((await headersOf('/api/other/fresh'))[0], 'no-store')
  t.equal((await headersOf('/api/open/fresh'))[0], controls['/fresh'], 'a public route')
  const shaped = await gateway.call('/api/shaped/fresh', { cookie })
  t.equal(shaped.headers.get('cache-control'), 'private, max-age=60, immutable')
})
