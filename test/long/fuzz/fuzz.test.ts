import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freshSeed } from '../../support/random.ts'
import { fuzz } from './fuzz.ts'

/** Ends a gateway at its 40th request: by then it is under attack, however slow the machine is. */
function writeFragile(folder: string): string {
  const file = join(folder, 'fault-on-request.js')
  writeFileSync(
    file,
    `import { Server } from 'node:http'
    const { emit } = Server.prototype
    let requests = 0
    Server.prototype.emit = function (name, ...values) {
      if (name === 'request' && ++requests === 40) {
        setImmediate(() => { throw new Error('fragile') })
      }
      return emit.call(this, name, ...values)
    }`
  )
  return file
}

t.test('an attack finds a gateway that ends, and says why', async t => {
  const fragile = writeFragile(t.testdir())
  const seed = freshSeed()
  const report = await fuzz(t.after, { seed, seconds: 12, preload: fragile })
  t.match(report.problems, [/the process ended/], `seed ${seed}`)
  t.match(report.faults.join(), /fragile/)
  t.ok(report.lastRequests.length > 0)
})
