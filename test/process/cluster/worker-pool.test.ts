import cluster from 'node:cluster'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import t, { type Test } from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { within } from '../../../src/process/cluster/rpc.ts'
import { WorkerPool } from '../../../src/process/cluster/worker-pool.ts'
import { createLogger } from '../../../src/services/services.ts'
import { adopt } from '../../../src/observability/emitters.ts'
import { configFolder } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

interface Line {
  readonly msg: string
  readonly worker?: number
  readonly err?: { readonly message: string }
}

type Times = Pick<ConstructorParameters<typeof WorkerPool>[0], 'buildMs' | 'stopMs'>

/** Two workers of this process. */
async function pooled(t: Test, times: Times = {}) {
  const folder = await configFolder({ gateway: { log: { level: 'fatal' } } })
  const { fault: _, ...config } = loadConfig(folder, {})
  const lines: Line[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Line)
  const log = createLogger({ level: 'info', format: 'json' }, { write })
  const pool = new WorkerPool({ config, log, onRestart: () => {}, ...times })
  t.teardown(async () => {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGCONT')
    await pool.close()
  })
  await pool.start(2)
  const pids = () => Object.values(cluster.workers ?? {}).map(worker => worker?.process.pid ?? 0)
  const built = async () =>
    (await pool.answering()).map(({ state }) => state?.requests.map(([generation]) => generation))
  const messages = () => lines.map(({ msg }) => msg)
  return { config, pool, lines, messages, pids, built }
}

t.test('a worker that starts while a config is put in force has nothing but it', async t => {
  const { config, pool, pids, built } = await pooled(t)
  const [killed] = pool.serving()
  const before = pids()
  killed?.worker.process.kill('SIGKILL')
  await until('another starts', () => pids().some(pid => !before.includes(pid)))
  const starting = pids().find(pid => !before.includes(pid)) ?? 0
  process.kill(starting, 'SIGSTOP')
  await pool.build(2, config)
  await pool.activate(2, config)
  await pool.callAll(call => call('retire', { number: 1, graceMs: 0 }))
  process.kill(starting, 'SIGCONT')
  await until('it serves', () => pool.serving().length === 2)
  t.same(await built(), [[2], [2]])
})

t.test('a config that is dropped while a worker still builds it is not kept there', async t => {
  const { config, pool, built } = await pooled(t)
  const building = pool.build(2, config)
  await pool.callAll(call => call('drop', { number: 2 }))
  await building
  t.same(await built(), [[1], [1]])
})

t.test('a worker that cannot take what all have built is replaced by one that does', async t => {
  const { config, pool, lines, built } = await pooled(t)
  await pool.build(2, config)
  const [one] = pool.serving()
  await one?.call('drop', { number: 2 })
  await pool.activate(2, config)
  await until('both serve', () => pool.serving().length === 2)
  t.same(await built(), [[1, 2], [2]])
  t.match(lines, [
    {
      worker: 1,
      msg: 'a worker could not take the config; starting another in its place',
      err: { message: 'generation 2 was not built' }
    }
  ])
})

const silence = 'a worker has not answered for 1000 ms: it counts as not ready'

t.test('a worker that hangs is waited for once, and counts again when it answers', async t => {
  const { pool, messages } = await pooled(t)
  const [one, other] = pool.serving()
  one?.worker.process.kill('SIGSTOP')
  const indexes = async () => (await pool.answering()).map(({ index }) => index)
  t.same(await Promise.all([indexes(), indexes()]), [[2], [2]])
  t.same(messages(), [silence])
  await t.rejects(
    async () => await one?.ask(),
    { message: 'the worker does not answer' },
    'at once'
  )
  t.equal((await pool.callAny(call => call('state', {}))).index, other?.index)
  one?.worker.process.kill('SIGCONT')
  await until('it is seen', () => messages().includes('the worker answers again'))
  t.same(await indexes(), [1, 2])
})

t.test('a worker that hangs as a config is built is replaced, and the others take it', async t => {
  const { config, pool, messages, built } = await pooled(t, { buildMs: 2000 })
  const [one] = pool.serving()
  one?.worker.process.kill('SIGSTOP')
  await pool.build(2, config)
  await pool.activate(2, config)
  await until('both serve', () => pool.serving().length === 2)
  t.same(await built(), [[1, 2], [2]])
  t.same(messages(), [silence, 'a worker hangs; starting another in its place'])
})

t.test('one that hangs after it has built a config is replaced, too', async t => {
  const { config, pool, messages, built } = await pooled(t, { buildMs: 2000 })
  await pool.build(2, config)
  pool.serving()[0]?.worker.process.kill('SIGSTOP')
  await pool.activate(2, config)
  await until('both serve', () => pool.serving().length === 2)
  t.same(await built(), [[1, 2], [2]])
  t.same(messages(), ['a worker could not take the config; starting another in its place'])
})

t.test('a worker that builds for too long but answers keeps serving', async t => {
  const { config, pool, messages } = await pooled(t, { buildMs: 0 })
  const both = pool.serving().map(({ worker }) => worker.id)
  await t.rejects(pool.build(2, config), { message: 'a worker has not built it within 0 ms' })
  t.same(
    (await pool.answering()).map(({ worker }) => worker.id),
    both
  )
  t.same(messages(), [])
})

t.test('a worker that hangs does not hold up the end, nor is it left behind', async t => {
  const { pool, messages } = await pooled(t, { stopMs: 60_000 })
  const [one] = pool.serving()
  one?.worker.process.kill('SIGSTOP')
  t.equal(await within(20_000, pool.stop(0, 0)), false, 'its requests did not finish')
  t.same(messages(), ['a worker hangs; killed'])
})

t.test('a worker that closes its services still answers what it knows', async t => {
  const collector = adopt(createServer(() => {}))
  collector.listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${port}`
  t.teardown(() => {
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT']
    collector.closeAllConnections()
    collector.close()
  })
  const { pool } = await pooled(t)
  await fetch(`${await pool.listen()}/api/nothing`)
  const stopped = pool.stop(0, 0)
  await once(collector, 'request')
  const texts = await pool.askAll(call => call('metrics', {}))
  t.match(texts[0]?.body, /console_gateway_/)
  const isClosing = async () => (await pool.callAny(call => call('state', {}))).isClosing
  await until('the only one that is left closes its services', isClosing)
  t.equal(await stopped, true)
})

t.test('a worker without its primary ends, whatever it waits for', async t => {
  const { pool } = await pooled(t)
  const { hostname, port } = new URL(await pool.listen())
  const sockets = [1, 2].map(() => adopt(connect(Number(port), hostname)))
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  for (const socket of sockets) {
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await once(socket, 'data')
  }
  await Promise.all(
    pool.serving().map(async ({ call, worker }) => {
      const stopping = t.rejects(call('stop', { graceMs: 0, lingerMs: 600_000 }), {
        message: 'the worker ended'
      })
      await call('state', {})
      worker.process.disconnect()
      await until('it has ended', () => worker.isDead())
      await stopping
    })
  )
})
