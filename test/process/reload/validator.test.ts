/** The thread in which a config is read before it is taken. */
import type { Worker } from 'node:worker_threads'
import t from 'tap'
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
