import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError, describeFault } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

async function reportsOf(custom: object, endpoints: object = { refresh: { path: '/refresh' } }) {
  const folder = await configFolder({
    gateway: { envelope: { dialect: 'custom', successCode: '0000', custom } },
    routes: { endpoints }
  })
  const textsOf = (faults: ConfigError['faults']) =>
    faults.map(describeFault).filter(text => text.includes('refreshCodes'))
  try {
    return textsOf(loadConfig(folder, {}).warnings)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return textsOf(error.faults)
  }
}

t.test('an ended session with the code of a refresh is a fault', async t => {
  const refreshCodes = ['9998', '9999']
  t.match(await reportsOf({ refreshCodes, errors: { 'session.*': { code: '9999' } } }), [
    /yaml:\d+ envelope\.custom\.refreshCodes\.1: is the code of `session\.none`.*for ever/
  ])
  t.match(
    await reportsOf({ refreshCodes, errors: { '*': { code: 9999 } } }),
    [/code of `session\.none`/],
    'a number reads as the text'
  )
  const errors = { 'session.*': { code: '8888' }, 'session.idle': { code: '9998' } }
  t.match(await reportsOf({ refreshCodes, errors }), [/Codes\.0: is the code of `session\.idle`/])
  t.match(await reportsOf({ refreshCodes: [401] }), [/code of `session\.none`/], 'by default 401')
})

t.test('a code of its own for sign-outs is no fault, nor is one of an outage', async t => {
  const refreshCodes = ['9999']
  const errors = { 'session.*': { code: '8888' }, 'session.unavailable': { code: '9999' } }
  t.same(await reportsOf({ refreshCodes, errors }), [])
  t.match(await reportsOf({ refreshCodes, errors }, {}), [
    /warning: has no effect for the console: `endpoints\.refresh`/
  ])
})
