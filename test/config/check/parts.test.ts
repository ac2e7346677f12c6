import t from 'tap'
import { stringify } from 'yaml'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const part = { upstream: 'b', rewrite: '/n', into: 'n', required: false }

/** Faults of `missing` with a name on a route, beside others. */
function faultsWith(missing: string, envelope: object, more: object = {}): string[] {
  const r = {
    path: '/api/r',
    upstream: 'b',
    methods: ['GET'],
    parts: { n: part },
    missing,
    ...more
  }
  const upstreams = { b: { url: 'http://backend.internal:81' } }
  const folder = textFolder(t.after, {
    'gateway.yaml': stringify({ envelope }),
    'routes.yaml': stringify({ upstreams, routes: { r } })
  })
  return faultsOf(folder).filter(fault => fault.includes('is a member of every success'))
}

t.test('the list of missing parts takes no name of another member', t => {
  t.match(faultsWith('data', {}), [
    /routes\.r\.missing: "data" is a member of every success: take another$/
  ])
  for (const [missing, envelope, more] of [
    ['code', {}],
    ['total', {}],
    ['success', { dialect: 'problem' }, { dialect: 'ant-design-pro' }],
    ['msg', { dialect: 'custom', custom: { members: { message: 'msg' } } }],
    ['data', { dialect: 'custom', custom: { members: { data: false } } }]
  ] as const) {
    t.equal(faultsWith(missing, envelope, more).length, 1, `${missing} ${JSON.stringify(envelope)}`)
  }
  for (const [missing, envelope, more] of [
    ['missing', {}],
    ['code', { dialect: 'ant-design-pro' }],
    ['data', { dialect: 'problem' }],
    ['data', {}, { parts: {} }]
  ] as const) {
    t.same(faultsWith(missing, envelope, more), [], `${missing} ${JSON.stringify(envelope)}`)
  }
  t.end()
})

t.test('also of the profile', t => {
  const folder = textFolder(t.after, {
    'routes.yaml': stringify({
      upstreams: { b: { url: 'http://backend.internal:81' } },
      endpoints: { profile: { missing: 'code', parts: { n: part } } }
    })
  })
  t.match(
    faultsOf(folder).join(),
    /endpoints\.profile\.missing: "code" is a member of every success/
  )
  t.end()
})
