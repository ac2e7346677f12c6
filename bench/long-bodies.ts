/** Response times of others while one user gets long answers that are shaped: with threads and without, by turns. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './gateway.ts'
import { freePort, type Place, preparePlace, startMeasured, stop, untilReady } from './place.ts'
import { prepare } from './prepare.ts'
import { figure } from './rounds.ts'

const rounds = Number(process.argv[2] ?? 5)
const ms = Number(process.argv[3] ?? 3000)
const rate = 200
const sizes = [2_000_000, 10_000_000]

async function startGateway(place: Place, shapingThreads: number | 'auto') {
  const folder = temporaryFolder('long-bodies')
  const [port, opsPort] = [await freePort(), await freePort()]
  // YAML reads JSON.
  const write = (name: string, value: object) =>
    writeFileSync(join(folder, name), JSON.stringify(value))
  write('gateway.yaml', {
    server: { listen: `127.0.0.1:${port}`, shapingThreads },
    ops: { listen: `127.0.0.1:${opsPort}` },
    drain: { notice: '0s' },
    reload: { watch: false },
    session: { cookie: { secure: false } }
  })
  write('users.yaml', { users: {} })
  write('limits.yaml', {
    inFlightPerUser: 1000,
    sizes: { shape: '16MiB' },
    limits: { anonymous: { by: 'address', max: 1_000_000_000, window: '1m' } }
  })
  write('routes.yaml', {
    upstreams: { backend: { url: place.upstream } },
    routes: {
      notices: {
        path: '/api/notices/*',
        upstream: 'backend',
        access: 'public',
        rewrite: '/notices/*',
        shape: 'page'
      }
    },
    shapes: {
      page: [
        { open: 'code-data' },
        { paging: { list: 'list', total: 'count', each: [{ use: 'notice' }] } }
      ],
      notice: [
        { rename: { noticeId: 'id', subject: 'title', createdAt: 'datetime' } },
        { convert: { id: 'string', datetime: 'date-seconds' } },
        { map: { state: { 0: 'unread', 1: 'read', '*': 'unknown' } } },
        { default: { kind: 'notification' } },
        { pick: ['id', 'title', 'datetime', 'state', 'kind', 'body'] }
      ]
    }
  })
  const child = startMeasured(
    process.execPath,
    [join(import.meta.dirname, '../dist/launch.js'), 'start', '--config', folder],
    { env: { ...process.env, NODE_ENV: 'production' }, free: true }
  )
  await untilReady(`http://127.0.0.1:${opsPort}/readyz`, child)
  const origin = `http://127.0.0.1:${port}`
  return {
    small: async () =>
      await place.load({
        origin,
        pid: child.pid ?? 0,
        requests: Array.from({ length: 50 }, () => ({
          method: 'GET' as const,
          path: '/api/notices/small',
          headers: { accept: 'application/json' }
        })),
        warmMs: 300,
        ms,
        rate
      }),
    long: async (bytes: number) => {
      const response = await fetch(`${origin}/api/notices/${bytes}`)
      if (response.status !== 200) throw new Error(`${bytes} bytes: ${response.status}`)
      let length = 0
      for await (const chunk of response.body ?? []) length += chunk.length
      if (length < bytes / 2) throw new Error(`${bytes} bytes became ${length}`)
    },
    stop: async () => await stop(child)
  }
}

if (process.argv[4] !== 'built') prepare()
const place = await preparePlace()
const gateways = { threads: await startGateway(place, 'auto'), loop: await startGateway(place, 0) }
type Name = keyof typeof gateways

/** p99, the slowest, and long answers a second. */
async function measure(name: Name, bytes: number | undefined) {
  const gateway = gateways[name]
  const state = { isOver: bytes === undefined }
  let count = 0
  const other = (async () => {
    while (!state.isOver) {
      await gateway.long(bytes ?? 0)
      count++
    }
  })()
  const { p50Ms, p99Ms, maxMs, refused } = await gateway.small()
  state.isOver = true
  await other
  if (Object.keys(refused).length > 0) throw new Error(JSON.stringify(refused))
  return { p50: p50Ms, p99: p99Ms, max: maxMs, perSecond: (count / (ms + 300)) * 1000 }
}

const names: Name[] = ['threads', 'loop']
for (const name of names) {
  for (const bytes of sizes) for (let n = 0; n < 3; n++) await gateways[name].long(bytes)
  await gateways[name].small()
}
const results = new Map<string, Array<Awaited<ReturnType<typeof measure>>>>()
for (let round = 0; round < rounds; round++) {
  for (const bytes of [undefined, ...sizes]) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const key = `${name}, ${bytes === undefined ? 'alone' : `${bytes / 1e6} MB`}`
      results.set(key, [...(results.get(key) ?? []), await measure(name, bytes)])
    }
  }
}
for (const name of names) await gateways[name].stop()
await place.close()

const text = (values: readonly number[]) => {
  const { median, min, max } = figure([...values])
  return `${median.toFixed(1)} (${min.toFixed(1)}–${max.toFixed(1)})`
}
process.stdout.write(
  `${place.machine}; ${rounds} rounds of ${ms} ms\n\n| | p50, ms | p99, ms | slowest, ms | long answers/s |\n|---|---|---|---|---|\n`
)
for (const [key, list] of results) {
  const cells = (['p50', 'p99', 'max', 'perSecond'] as const).map(member =>
    text(list.map(result => result[member]))
  )
  process.stdout.write(`| ${key} | ${cells.join(' | ')} |\n`)
}
process.exit()
