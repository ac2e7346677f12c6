import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

const answers: Record<string, unknown> = {
  '/good': { code: 0, data: { list: [{ id: 1, at: 1795239000 }], count: 9 } },
  '/denied': { code: 403, msg: 'Not yours' },
  '/gone': { code: 40400, msg: 'No such order' },
  '/odd': { code: 'E7' }
}
const setUp = async (
  cleanUp: (undo: () => unknown) => void,
  more: { gateway?: Record<string, unknown>; route?: object; shapes?: object } = {}
) => {
  const backend = await testUpstream(cleanUp, (request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(answers[request.url ?? '']))
  })
  return testGateway(cleanUp, {
    ...(more.gateway && { gateway: more.gateway }),
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        all: {
          path: '/api/all/*',
          rewrite: '/*',
          access: 'public',
          upstream: 'b',
          shape: 'page',
          ...more.route
        }
      },
      shapes: {
        page: [
          { status: { path: 'code', ok: [0], statuses: { 40400: 404 } } },
          { unwrap: 'data' },
          {
            paging: {
              list: 'list',
              total: 'count',
              each: [{ convert: { at: 'date-seconds', id: 'string' } }]
            }
          }
        ],
        ...more.shapes
      }
    }
  })
}

t.test('an unwrap that finds nothing is logged once, with what to do', async t => {
  const gateway = await setUp(t.after, {
    shapes: { page: [{ unwrap: 'items' }, { wrap: 'list' }] }
  })
  for (let n = 0; n < 3; n++) {
    t.match((await gateway.call('/api/all/good')).json, { data: [], total: 0 })
  }
  const lines = gateway.log.filter(({ event }) => event === 'shape.missing')
  t.equal(lines.length, 1)
  t.match(lines[0], {
    level: 'warn',
    shape: 'page',
    path: 'items',
    msg: /found nothing at "items".*explain GET PATH --live/
  })
})

t.test(
  'a back-end that answers 200 to everything gets true statuses and enveloped errors',
  async t => {
    const gateway = await setUp(t.after)
    t.match(await gateway.call('/api/all/good'), {
      status: 200,
      json: { success: true, data: [{ id: '1', at: '2026-11-21T05:30:00.000Z' }], total: 9 }
    })
    t.match(await gateway.call('/api/all/denied'), {
      status: 403,
      json: {
        success: false,
        ok: false,
        errorCode: 'upstream.error',
        message: 'Not yours',
        code: 403,
        requestId: String
      }
    })
    t.match(await gateway.call('/api/all/gone'), {
      status: 404,
      json: { message: 'No such order', code: 40400 }
    })
    t.match(await gateway.call('/api/all/odd'), {
      status: 502,
      json: { message: /reported an error/, code: 502 }
    })
  }
)

t.test('where the console wants 200, errors have it: everywhere, or on one route', async t => {
  const everywhere = await setUp(t.after, { gateway: { envelope: { errorStatus: 'ok' } } })
  t.match(await everywhere.call('/api/all/gone'), {
    status: 200,
    json: { success: false, errorCode: 'upstream.error' }
  })
  t.match(await everywhere.call('/api/nowhere'), {
    status: 200,
    json: { success: false, errorCode: 'route.unknown' }
  })
  t.match(await everywhere.call('/api/account/profile'), {
    status: 200,
    json: { success: false, errorCode: 'session.none' }
  })
  const route = await setUp(t.after, { route: { errorStatus: 'ok' } })
  t.match(await route.call('/api/all/gone'), { status: 200, json: { success: false } })
  t.equal((await route.call('/api/nowhere')).status, 404)
  const own = await setUp(t.after, {
    gateway: { envelope: { errorStatus: 'ok' } },
    route: { errorStatus: 'own' }
  })
  t.equal((await own.call('/api/all/gone')).status, 404)
})

t.test('the members of an object go up, and a bare list gets a name and a count', async t => {
  const gateway = await setUp(t.after, {
    route: { shape: 'lifted' },
    shapes: {
      page: [{ use: 'lifted' }],
      lifted: [
        { unwrap: 'data.list' },
        { each: [{ rename: { at: 'attributes' } }, { lift: 'attributes' }] },
        { nest: { as: 'rows', count: 'n' } },
        { wrap: 'envelope' }
      ]
    }
  })
  answers['/good'] = {
    data: { list: [{ id: 7, at: { id: 1, title: 'Hi', by: { id: 2 } } }, { id: 8, at: null }, 9] }
  }
  t.match(await gateway.call('/api/all/good'), {
    status: 200,
    json: {
      data: { rows: [{ id: 7, title: 'Hi', by: { id: 2 } }, { id: 8, attributes: null }, 9], n: 3 }
    }
  })
})
