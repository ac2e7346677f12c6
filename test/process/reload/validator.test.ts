/** The thread in which a config is read before it is taken. */
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import { configHashes } from '../../../src/config/load/config-hash.ts'
import { loadConfig } from '../../../src/config/load/load.ts'
import { validate } from '../../../src/process/reload/validator.ts'
import { textFolder } from '../../support/config-files.ts'

t.test(
  'a thread examines ten times and then gives way to another, so that its heap does not grow with each reload',
  async t => {
    const folder = textFolder(t.after, {})
    const { gateway: running } = loadConfig(folder, {})
    const ended: Array<Promise<void>> = []
    const count = (thread: Worker) => {
      ended.push(
        new Promise(resolve => {
          thread.once('exit', () => resolve())
        })
      )
    }
    process.on('worker', count)
    t.after(() => process.off('worker', count))
    const times = async (number: number) => {
      for (let time = 0; time < number; time++) {
        t.ok('config' in (await validate({ folder, environment: {}, running })).result)
      }
    }
    await times(10)
    t.equal(ended.length, 1)
    await ended[0]
    await times(1)
    t.equal(ended.length, 2)
  }
)

t.test(
  'examples with numbers that a double cannot hold come back with all their digits',
  async t => {
    const digits = '12345678901234567890'
    const folder = textFolder(t.after, {
      'routes.yaml': `upstreams: { b: { url: http://127.0.0.1:9 } }
routes: { r: { path: /r, upstream: b, shape: s } }
shapes: { s: [{ unwrap: a }] }
examples: { e: { shape: s, input: { a: ${digits} }, output: ${digits} } }
`
    })
    const { result } = await validate({ folder, environment: {} })
    t.ok('config' in result, 'it is no fault')
    if (!('config' in result)) return
    t.equal(JSON.stringify(result.config.routes.examples['e']?.output), digits)
    t.match(JSON.stringify(result.config.written.routes), `"output":${digits}`)
    t.same(configHashes(result.config), configHashes(loadConfig(folder, {})))
  }
)
