import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

async function faultsOf(envelope: object, more: object = {}, route?: object): Promise<string[]> {
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { orders: { path: '/api/orders', upstream: 'b', ...route } }
  }
  const folder = await configFolder({ gateway: { envelope, ...more }, ...(route && { routes }) })
  try {
    loadConfig(folder, {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults
      .map(({ path, message }) => `${path}: ${message}`)
      .filter(fault => /^(envelope|login|routes)\./.test(fault))
  }
}

const custom = (settings: object = {}, more: object = {}) => ({
  dialect: 'custom',
  custom: settings,
  ...more
})

t.test('an envelope of its own needs nothing but its name', async t => {
  t.same(await faultsOf(custom()), [])
  t.match(await faultsOf({ dialect: 'custom' }), [/envelope.dialect: .*needs `envelope.custom`/])
  t.match(await faultsOf({}, {}, { dialect: 'custom' }), [/routes.orders.dialect/])
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
    const faults = await faultsOf(custom({ errors: { 'session.*': { code } } }, { successCode }))
    t.match(faults, [/envelope.custom.errors.session.\*.code: .*reads as a code of success/])
  }
  const also = custom({ alsoSuccess: [0], errors: { '*': { code: '0' } } }, { successCode: 200 })
  t.match(await faultsOf(also), [/errors.\*.code/])
  t.match(await faultsOf(custom({ refreshCodes: ['0'] })), [/refreshCodes.0: is a code of success/])
  t.same(
    await faultsOf(
      custom(
        { errors: { '*': { code: 500 }, 'session.*': { code: '8888', status: 200 } } },
        { successCode: '0000' }
      )
    ),
    []
  )
})

t.test('the code of success is no HTTP status of an error', async t => {
  t.match(await faultsOf({ successCode: 404 }), [
    /envelope.successCode: is also the HTTP status 404/
  ])
  t.match(await faultsOf({ successCode: '500' }), [/successCode/])
  t.same(await faultsOf({ successCode: '0000' }), [])
})

t.test('entries name error codes, prefixes of them, or all', async t => {
  t.match(await faultsOf(custom({ errors: { 'session.idl': { code: 1 } } })), [
    /errors.session.idl: no error code fits. Did you mean "?session.idle/
  ])
  t.match(await faultsOf(custom({ errors: { 'sessions.*': { code: 1 } } })), [/no error code fits/])
  t.match(await faultsOf(custom({ errors: { '*': { status: 302 } } })), [/expected 200, or 400/])
  t.same(
    await faultsOf(
      custom({
        errors: { 'session.idle': { code: 1 }, 'upstream.*': { code: 2 }, '*': { code: 3 } }
      })
    ),
    []
  )
})

t.test('each member has a name of its own', async t => {
  t.match(await faultsOf(custom({ members: { data: 'message' } })), [
    /members.message: "message" is the name of `data`, too/
  ])
  t.match(await faultsOf(custom({ members: { code: '__proto__' } })), [/a member name, or false/])
})

t.test('without a code and a flag the status alone tells an error, so it stays true', async t => {
  const members = { code: false, errorCode: false }
  t.same(await faultsOf(custom({ members })), [])
  t.match(await faultsOf(custom({ members }, { errorStatus: 'ok' })), [/envelope.errorStatus/])
  t.match(await faultsOf(custom({ members, errors: { '*': { status: 200 } } })), [/\*.status/])
  t.match(await faultsOf(custom({ members }), {}, { errorStatus: 'ok' }), [/orders.errorStatus/])
  t.match(await faultsOf(custom({ members }), { login: { refusedStatus: 200 } }), [/refusedStatus/])
  const flagged = { ...members, success: 'success' }
  t.same(await faultsOf(custom({ members: flagged }, { errorStatus: 'ok' })), [])
})

t.test('problem details have the status of their error', async t => {
  t.same(await faultsOf({ dialect: 'problem' }), [])
  t.match(await faultsOf({ dialect: 'problem', errorStatus: 'ok' }), [/envelope.errorStatus/])
  t.match(await faultsOf({ dialect: 'problem' }, { login: { refusedStatus: 200 } }), [
    /login.refusedStatus/
  ])
  t.match(await faultsOf({}, {}, { dialect: 'problem', errorStatus: 'ok' }), [/orders.errorStatus/])
})
