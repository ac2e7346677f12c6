/** A gateway that has seen everything that it measures, so that each metric has a series. */
import type { ServerResponse } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configFolder, testGateway } from './gateway.ts'
import { freePort } from './ports.ts'
import { testRedis } from './redis.ts'
import { json, testUpstream } from './upstream.ts'
import { until } from './until.ts'

/** The labels of each metric, by its name, as a scrape of the text format shows them. */
export type Exposed = ReadonlyMap<string, ReadonlySet<string>>

const schema = {
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'integer' }, rows: { type: 'array' } }
}

const login = '/api/auth/admin/login'

/** @returns the metrics of the text, those of histograms without their endings */
export function metricsIn(text: string): Exposed {
  const metrics = new Map<string, Set<string>>()
  const histograms = new Set<string>()
  for (const line of text.split('\n')) {
    const [, typed, type] = /^# TYPE (\S+) (\S+)/.exec(line) ?? []
    if (typed !== undefined) {
      metrics.set(typed, new Set())
      if (type === 'histogram') histograms.add(typed)
    }
    const [, series = '', labels = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? []
    const family = series.replace(/_(?:bucket|sum|count)$/, '')
    const known = metrics.get(histograms.has(family) ? family : series)
    for (const [, label = ''] of labels.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) known?.add(label)
  }
  return metrics
}

/** Answers after a while, so that a second request waits for its connection. */
async function slowBackEnd(after: (undo: () => unknown) => void): Promise<string> {
  const answer = (_request: unknown, response: ServerResponse) =>
    void setTimeout(() => response.end('{}'), 50)
  return (await testUpstream(after, answer)).url
}

async function usedFolder(after: (undo: () => unknown) => void) {
  const { url: redis } = await testRedis(after)
  const rows = Array.from({ length: 40_000 }, (_, index) => ({ index, text: 'a'.repeat(40) }))
  const backend = await testUpstream(after, json(200, { id: 'text', rows }))
  const events = await testUpstream(after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n')
  })
  const dead = `http://127.0.0.1:${await freePort()}`
  const folder = await configFolder({
    gateway: {
      redis: { url: redis, commandTimeout: '20s' },
      session: { secrets: ['${SESSION_SECRET}'] },
      audit: { key: '${AUDIT_KEY}' }
    },
    routes: {
      upstreams: {
        b: { url: backend.url },
        events: { url: events.url },
        slow: { url: await slowBackEnd(after), connections: 1 },
        full: { url: await slowBackEnd(after), connections: 1, queue: 1 },
        pair: { url: [dead, backend.url] },
        dead: { url: dead }
      },
      shapes: { plain: [{ rename: { other: 'another' } }] },
      routes: {
        shaped: {
          path: '/api/shaped',
          upstream: 'b',
          shape: 'plain',
          contract: { file: 'contract.json', mode: 'observe' },
          parts: { missing: { upstream: 'dead', rewrite: '/', into: 'missing', required: false } }
        },
        long: { path: '/api/long', upstream: 'b', shape: 'plain' },
        full: { path: '/api/full', upstream: 'full' },
        slow: { path: '/api/slow', upstream: 'slow' },
        pair: { path: '/api/pair', upstream: 'pair' },
        limited: { path: '/api/limited', upstream: 'slow' },
        events: { path: '/api/events', upstream: 'events' }
      }
    },
    limits: {
      sizes: { shape: '16MiB' },
      limits: {
        few: { by: 'user', max: 1, window: '1h', routes: ['limited'] },
        shadowed: { by: 'user', max: 1, window: '1h', routes: ['slow'], mode: 'shadow' }
      },
      lockout: { accountAndAddress: { failures: 2 } }
    }
  })
  writeFileSync(join(folder, 'contract.json'), JSON.stringify(schema))
  return folder
}

/** Scrapes a gateway of one process with Redis, whose every part was used. */
export async function scrapeUsed(after: (undo: () => unknown) => void): Promise<string> {
  const gateway = await testGateway(after, await usedFolder(after), {
    AUDIT_KEY: 'an audit key of at least thirty-two bytes',
    SESSION_SECRET: 'a secret of at least thirty-two characters'
  })
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  const cookie = await gateway.signIn()
  const get = async (path: string) => await gateway.call(path, { cookie })
  await get('/api/shaped')
  await get('/api/long')
  await Promise.all([get('/api/full'), get('/api/full'), get('/api/full')])
  await Promise.all([get('/api/slow'), get('/api/slow')])
  for (let times = 0; times < 8; times++) await get('/api/pair')
  for (let times = 0; times < 2; times++) await get('/api/limited')
  for (let times = 0; times < 3; times++) {
    await gateway.call(login, { json: { username: 'bob', password: 'wrong' } })
  }
  const events = async (session: string) =>
    await fetch(`${gateway.url}/api/events`, { headers: { cookie: session } })
  const ended = await events(cookie)
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'alice' } })
  await ended.text().catch(() => '')
  const open = await events(await gateway.signIn())
  after(() => open.body?.cancel())
  await gateway.reload('operator')
  const text = async () => await (await gateway.ops('/metrics')).text()
  await until('the contract was checked', async () => /deviations_total\{/.test(await text()))
  return await text()
}
