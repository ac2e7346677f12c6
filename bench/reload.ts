/** What a reload costs: how long it takes with many routes, what requests feel meanwhile, and whether many routes make a request dearer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort, type Place, preparePlace, startMeasured, stop, untilReady } from './place.ts'
import { prepare } from './prepare.ts'
import { figure, paired } from './rounds.ts'

const many = Number(process.argv[2] ?? 1000)
const few = 10
const reloads = 20
const rounds = 7
const rate = 200

const opsSecret = 'a secret for the bench, long enough for anyone'

async function startGateway(place: Place, routes: number) {
  const folder = mkdtempSync(join(tmpdir(), 'reload-'))
  const [port, opsPort] = [await freePort(), await freePort()]
  // YAML reads JSON.
  const write = (name: string, value: object) =>
    writeFileSync(join(folder, name), JSON.stringify(value))
  const take = (version: number) =>
    write('routes.yaml', {
      upstreams: { backend: { url: place.upstream } },
      routes: Object.fromEntries(
        Array.from({ length: routes }, (_, n) => [
          `route-${n}`,
          {
            path: `/api/r${n}/*`,
            methods: ['GET', 'POST'],
            upstream: 'backend',
            access: n % 2 === 0 ? 'public' : 'session',
            rewrite: '/notices/*',
            timeout: `${30 + version}s`,
            shape: 'list'
          }
        ])
      ),
      shapes: { list: [{ open: 'code-data' }, { unwrap: 'list' }, { wrap: 'list' }] }
    })
  write('gateway.yaml', {
    server: { listen: `127.0.0.1:${port}` },
    ops: { listen: `127.0.0.1:${opsPort}`, secret: '${OPS_SECRET}' },
    drain: { notice: '0s' },
    reload: { watch: false },
    session: { cookie: { secure: false } },
    login: {
      sources: [
        {
          kind: 'upstream-login',
          upstream: 'backend',
          path: '/login',
          user: { id: 'user.id', username: 'user.username', name: 'user.name', roles: 'user.roles' }
        }
      ]
    }
  })
  write('limits.yaml', {
    inFlightPerUser: 1000,
    limits: { anonymous: { by: 'address', max: 1_000_000_000, window: '1m' } }
  })
  take(0)
  const child = startMeasured(
    process.execPath,
    [join(import.meta.dirname, '../dist/launch.js'), 'start', '--config', folder],
    { env: { ...process.env, NODE_ENV: 'production', OPS_SECRET: opsSecret }, free: true }
  )
  const ops = `http://127.0.0.1:${opsPort}`
  await untilReady(`${ops}/readyz`, child)
  return {
    load: async (given: {
      readonly connections: number
      readonly ms: number
      readonly rate?: number
      readonly warmMs?: number
    }) =>
      await place.load({
        origin: `http://127.0.0.1:${port}`,
        pid: child.pid ?? 0,
        requests: Array.from({ length: given.connections }, () => ({
          method: 'GET' as const,
          path: '/api/r4/small',
          headers: { accept: 'application/json' }
        })),
        warmMs: given.warmMs ?? 0,
        ms: given.ms,
        ...(given.rate !== undefined && { rate: given.rate })
      }),
    reload: async (version: number) => {
      take(version)
      const began = performance.now()
      const { outcome } = (await (
        await fetch(`${ops}/ops/api/reload`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'authorization': `Bearer ${opsSecret}` },
          body: '{}'
        })
      ).json()) as { outcome: string }
      if (outcome !== 'reloaded') throw new Error(`the reload was ${outcome}`)
      return performance.now() - began
    },
    stop: async () => {
      await stop(child)
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

prepare()
const place = await preparePlace()
const [small, large] = [await startGateway(place, few), await startGateway(place, many)]

const cpu = { small: [] as number[], large: [] as number[] }
for (const gateway of [small, large]) await gateway.load({ connections: 32, ms: 5000 })
for (let round = 0; round < rounds; round++) {
  for (const name of round % 2 === 0
    ? (['small', 'large'] as const)
    : (['large', 'small'] as const)) {
    const { cpuMicros, requests } = await (name === 'small' ? small : large).load({
      connections: 32,
      ms: 1000,
      warmMs: 100
    })
    cpu[name].push(cpuMicros / requests)
  }
}
await small.stop()

const quiet = await large.load({ connections: 50, ms: 5000, rate })
const times: number[] = []
const [busy] = await Promise.all([
  large.load({ connections: 50, ms: reloads * 600, rate }),
  (async () => {
    for (let n = 1; n <= reloads; n++) {
      times.push(await large.reload(n))
      await wait(200)
    }
  })()
])
await large.stop()
await place.close()

const show = (value: number, digits = 1) => value.toFixed(digits)
const { median, min, max } = paired(cpu.large, cpu.small, (a, b) => a / b)
const took = figure(times)
process.stdout.write(`${place.machine}

| | |
|---|---|
| CPU per request, ${many} routes against ${few} | ${show(median, 3)} (${show(min, 3)}–${show(max, 3)}) |
| a reload of ${many} routes, ms | ${show(took.median, 0)} (${show(took.min, 0)}–${show(took.max, 0)}) of ${times.length} |
| requests at ${rate}/s in quiet time, ms | p50 ${show(quiet.p50Ms, 2)}, p99 ${show(quiet.p99Ms, 2)}, slowest ${show(quiet.maxMs, 2)} |
| while reloads run, ms | p50 ${show(busy.p50Ms, 2)}, p99 ${show(busy.p99Ms, 2)}, slowest ${show(busy.maxMs, 2)} |
`)
process.exit()
