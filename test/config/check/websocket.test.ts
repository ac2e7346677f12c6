import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

async function faultsOf(route: object): Promise<string[]> {
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: {
        chat: { path: '/api/chat', websocket: {}, ...route },
        other: { path: '/api/other', upstream: 'b' }
      }
    }
  })
  const textOf = ({ path, message }: { path: string; message: string }) => `${path}: ${message}`
  try {
    return loadConfig(folder, {}).warnings.map(textOf)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.map(textOf)
  }
}

const about = (faults: readonly string[]) => faults.filter(each => each.includes('.websocket'))

t.test('what a WebSocket needs of its route is told', async t => {
  t.same(about(await faultsOf({ upstream: 'b' })), [], '`websocket: {}` is enough')
  t.match(about(await faultsOf({ upstream: 'b', methods: ['POST'] })), [/needs GET/])
  const parts = { list: { upstream: 'b', path: '/list' } }
  t.match(about(await faultsOf({ upstream: 'b', parts })), [/cannot be combined with parts/])
  t.match(about(await faultsOf({ parts })), [/without an upstream/])
  t.match(about(await faultsOf({ upstream: 'b', websocket: { ping: '0ms' } })), [
    /routes.chat.websocket.ping: expected at least 100ms, found "0ms"/
  ])
  t.match(about(await faultsOf({ upstream: 'b', websocket: { ping: '1m', idle: '1m' } })), [
    /websocket.ping: is not shorter than idle/
  ])
})
