/** Pages of lists: numbers that a console reads again, and totals that a back-end has in a header. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

t.test('case C1: the list has the page that the console asked for', async t => {
  const backend = await testUpstream(t.after, json(200, { rows: [{ id: 1 }], total: 25 }))
  const gateway = await testGateway(t.after, {
    backend: { url: backend.url, paging: { page: 'page', size: 'limit', firstPage: 0 } },
    routes: {
      paging: { page: 'current', size: 'size', defaultSize: 10 },
      routes: {
        list: { access: 'public', methods: ['GET', 'POST'], shape: 'page' },
        none: { access: 'public', shape: 'bare' }
      },
      shapes: {
        page: [
          { rename: { rows: 'records' } },
          { echo: { page: 'current', size: 'size' } },
          { wrap: 'envelope' }
        ],
        bare: [{ unwrap: 'rows' }, { echo: { page: 'current', size: 'size' } }]
      }
    }
  })
  const data = { records: [{ id: 1 }], total: 25 }
  for (const [query, numbers] of [
    ['?current=2&size=20', { current: 2, size: 20 }],
    ['?size=5&q=a%3Fb', { size: 5 }],
    ['?current=00000003', { current: 3 }],
    ['', {}]
  ] as const) {
    const { json: body } = await gateway.call(`/api/list${query}`)
    t.strictSame(body.data, { ...data, ...numbers }, query)
  }
  for (const [sent, numbers] of [
    [
      { current: 4, size: '50', name: '' },
      { current: 4, size: 50 }
    ],
    [{ current: -1, size: null }, {}],
    [{ current: 1.5, size: [10] }, {}],
    [[1], {}]
  ] as const) {
    const { json: body } = await gateway.call('/api/list', { json: sent })
    t.strictSame(body.data, { ...data, ...numbers }, JSON.stringify(sent))
  }
  const { json: mixed } = await gateway.call('/api/list?current=2', { json: { size: 7 } })
  t.strictSame(mixed.data, { ...data, current: 2, size: 7 })
  const refused = await gateway.call('/api/list?current=x&size=-1')
  t.equal(refused.status, 400, 'a page that is none is refused before')
  t.equal(backend.seen[0]?.url, '/api/list?page=1&limit=20')
  const bare = await gateway.call('/api/none?current=2')
  t.strictSame(bare.json, [{ id: 1 }], 'no object, no member')
})

t.test('json-server, JHipster, PostgREST: the total of a bare list is in a header', async t => {
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const { status, ...headers } = Object.fromEntries(new URL(url, backend.url).searchParams)
    response.writeHead(Number(status), headers).end('[{"id":1},{"id":2}]')
  })
  const counted = (countHeader: string) => [{ nest: { as: 'rows', count: 'total', countHeader } }]
  const gateway = await testGateway(t.after, {
    backend: backend.url,
    routes: {
      routes: {
        total: { path: '/total', access: 'public', shape: 'total' },
        range: { path: '/range', access: 'public', shape: 'range' }
      },
      shapes: { total: counted('x-total-count'), range: counted('content-range') }
    }
  })
  const rows = [{ id: 1 }, { id: 2 }]
  for (const [path, total] of [
    ['/total?status=200&X-Total-Count=319', 319],
    ['/total?status=200&X-Total-Count=many', 2],
    ['/range?status=200&Content-Range=items 0-1/319', 319],
    ['/range?status=206&Content-Range=0-1/40', 40],
    ['/range?status=206&Content-Range=0-1/*', 2],
    ['/range?status=206', 2]
  ] as const) {
    const { status, json: body } = await gateway.call(encodeURI(path))
    t.strictSame([status, body], [200, { rows, total }], path)
  }
  const ofFile = await gateway.call(encodeURI('/range?status=206&Content-Range=bytes 0-1/319'))
  t.equal(ofFile.json.errorCode, 'upstream.invalid')
})
