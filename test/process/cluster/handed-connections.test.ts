import t from 'tap'
import { start } from '../../support/command.ts'
import { configFolder } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { freePorts } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

interface Status {
  readonly workers: ReadonlyArray<{ readonly pid: number }>
}

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
/** Of a busy machine; without the mend a connection hangs for ever. */
const longestMs = 30_000

t.test('a connection handed to a worker that is killed before it took it is served', async t => {
  const redis = await testRedis(t.after)
  const [port = 0, opsPort = 0] = await freePorts(2)
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}`, workers: 2 },
      ops: { listen: `127.0.0.1:${opsPort}` },
      redis: { url: redis.url },
      session: { secrets: ['${SESSION_SECRET}'] }
    },
    limits: { limits: { all: { by: 'address', max: 1_000_000, window: '1h' } } }
  })
  const gateway = start(t.after, folder, environment)
  await gateway.says('with 2 workers')
  const ops = `http://127.0.0.1:${opsPort}`
  const workers = async () => {
    const { workers: both } = (await (await askOps(ops, '/status')).json()) as Status
    return both.map(({ pid }) => pid)
  }
  await until('both serve', async () => (await workers()).length === 2)
  const call = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/session`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(longestMs)
    })
    await answer.arrayBuffer()
  }
  const tries = Number(process.env['TRIES'] ?? 4)
  let held = 0
  for (let number = 0; number < tries; number++) {
    const [killed = 0] = await workers()
    // It takes nothing more, but its turn comes.
    process.kill(killed, 'SIGSTOP')
    let served = 0
    const calls = Promise.allSettled(
      Array.from({ length: 4 }, async () => {
        await call()
        served++
      })
    )
    await until('the other worker has served the rest', () => served >= 3)
    if (served === 3) held++
    process.kill(killed, 'SIGKILL')
    t.same(
      (await calls).filter(({ status }) => status === 'rejected'),
      [],
      `try ${number}`
    )
    await until('both serve again', async () => {
      const now = await workers()
      return now.length === 2 && !now.includes(killed)
    })
  }
  t.ok(held > tries / 2, `${held} of ${tries} were handed to a worker that was killed`)
  gateway.signal('SIGTERM')
  t.same(await gateway.ended, { code: 0, signal: null })
})

t.end()
