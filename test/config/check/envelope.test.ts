import t from 'tap'
import { reportsOf } from '../../support/config-files.ts'

function faultsOf(envelope: object, more: object = {}, route?: object): string[] {
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { orders: { path: '/api/orders', upstream: 'b', ...route } }
  }
  const reports = reportsOf({ gateway: { envelope, ...more }, ...(route && { routes }) })
  return reports.filter(report => /^(?:envelope|login|routes)\.\S+: (?!warning)/.test(report))
}

const custom = (settings: object = {}, more: object = {}) => ({
  dialect: 'custom',
  custom: settings,
  ...more
})

t.test('an envelope of its own needs nothing but its name', async t => {
  t.same(faultsOf(custom()), [])
  t.match(faultsOf({ dialect: 'custom' }), [/envelope.dialect: .*needs `envelope.custom`/])
})

t.test('no error has a code of success, whatever type either has', async t => {
  const pairs: Array<[success: unknown, code: unknown]> = [
    [0, 0],
    [0, '0'],
    ['0', 0],
    ['0000', '0000'],
    ['0000', 0],
    [0, '0000'],
    [200, '200'],
    [20_000, 20_000]
  ]
  for (const [successCode, code] of pairs) {
    const faults = faultsOf(custom({ errors: { 'session.*': { code } } }, { successCode }))
    t.match(faults, [/envelope.custom.errors.session.\*.code: .*reads as a code of success/])
  }
  const also = custom({ alsoSuccess: [0], errors: { '*': { code: '0' } } }, { successCode: 200 })
  t.match(faultsOf(also), [/errors.\*.code/])
  t.match(faultsOf(custom({ refreshCodes: ['0'] })), [/refreshCodes.0: is a code of success/])
  t.same(
    faultsOf(
      custom(
        { errors: { '*': { code: 500 }, 'session.*': { code: '8888', status: 200 } } },
        { successCode: '0000' }
      )
    ),
    []
  )
})

t.test('the code of success is no HTTP status of an error', async t => {
  t.match(faultsOf({ successCode: 404 }), [/envelope.successCode: is also the HTTP status 404/])
  t.match(faultsOf({ successCode: '500' }), [/successCode/])
  t.same(faultsOf({ successCode: '0000' }), [])
})

t.test('entries name error codes, prefixes of them, or all', async t => {
  t.match(faultsOf(custom({ errors: { 'session.idl': { code: 1 } } })), [
    /errors.session.idl: no error code fits. Did you mean "?session.idle/
  ])
  t.match(faultsOf(custom({ errors: { 'sessions.*': { code: 1 } } })), [/no error code fits/])
  t.match(faultsOf(custom({ errors: { '*': { status: 302 } } })), [/expected 200, or 400/])
  t.same(
    faultsOf(
      custom({
        errors: { 'session.idle': { code: 1 }, 'upstream.*': { code: 2 }, '*': { code: 3 } }
      })
    ),
    []
  )
})

t.test('each member has a name of its own', async t => {
  t.match(faultsOf(custom({ members: { data: 'message' } })), [
    /members.message: "message" is the name of `data`, too/
  ])
  t.match(faultsOf(custom({ members: { code: '__proto__' } })), [/a member name, or false/])
})

t.test('without a code and a flag the status alone tells an error, so it stays true', async t => {
  const members = { code: false, errorCode: false }
  t.same(faultsOf(custom({ members })), [])
  t.match(faultsOf(custom({ members }, { errorStatus: 'ok' })), [/envelope.errorStatus/])
  t.match(faultsOf(custom({ members, errors: { '*': { status: 200 } } })), [/\*.status/])
  t.match(faultsOf(custom({ members }), {}, { errorStatus: 'ok' }), [/orders.errorStatus/])
  const ofDual = { dialect: 'dual', custom: { members, errors: { '*': { status: 200 } } } }
  t.match(faultsOf(ofDual), [/\*.status/], 'also while another dialect is chosen')
  const flagged = { ...members, success: 'success' }
  t.same(faultsOf(custom({ members: flagged }, { errorStatus: 'ok' })), [])
})

t.test('problem details have the status of their error', async t => {
  t.same(faultsOf({ dialect: 'problem' }), [])
  t.match(faultsOf({ dialect: 'problem', errorStatus: 'ok' }), [/envelope.errorStatus/])
  t.match(faultsOf({ dialect: 'problem' }, {}, { errorStatus: 'ok' }), [/orders.errorStatus/])
})

const reportsIn = (custom: object, endpoints: object = { refresh: { path: '/refresh' } }) =>
  reportsOf({
    gateway: { envelope: { dialect: 'custom', successCode: '0000', custom } },
    routes: { endpoints }
  }).filter(report => report.includes('refreshCodes'))

t.test('an ended session with the code of a refresh is a fault', async t => {
  const refreshCodes = ['9998', '9999']
  t.match(reportsIn({ refreshCodes, errors: { 'session.*': { code: '9999' } } }), [
    /^envelope\.custom\.refreshCodes\.1: is the code of `session\.none`.*for ever/
  ])
  t.match(
    reportsIn({ refreshCodes, errors: { '*': { code: 9999 } } }),
    [/code of `session\.none`/],
    'a number reads as the text'
  )
  const errors = { 'session.*': { code: '8888' }, 'session.idle': { code: '9998' } }
  t.match(reportsIn({ refreshCodes, errors }), [/Codes\.0: is the code of `session\.idle`/])
  t.match(reportsIn({ refreshCodes: [401] }), [/code of `session\.none`/], 'by default 401')
})

t.test('a code of its own for sign-outs is no fault, nor is one of an outage', async t => {
  const refreshCodes = ['9999']
  const errors = { 'session.*': { code: '8888' }, 'session.unavailable': { code: '9999' } }
  t.same(reportsIn({ refreshCodes, errors }), [])
})
