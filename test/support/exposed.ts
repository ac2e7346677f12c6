/** A gateway that has seen everything that it measures, so that each metric has a series. */
import type { ServerResponse } from 'node:http'
import { audit, testGateway } from './gateway.ts'
import { freePort } from './ports.ts'
import { testRedis } from './redis.ts'
import { json, testUpstream } from './upstream.ts'
import { until } from './until.ts'

const schema = {
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'integer' }, rows: { type: 'array' } }
}

/** @returns the labels of each metric of the text, by its name; those of histograms without endings */
export function metricsIn(text: string) {
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

/** A back-end that answers after a while, so that a second request waits for its connection. */
const slow = (_request: unknown, response: ServerResponse) =>
  void setTimeout(() => response.end('{}'), 50)

const stream = (_request: unknown, response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: 1\n\n')
}

async function usedFiles(after: (undo: () => unknown) => void) {
  const rows = Array.from({ length: 40_000 }, (_, index) => ({ index, text: 'a'.repeat(40) }))
  const urlOf = async (answer: Parameters<typeof testUpstream>[1]) =>
    (await testUpstream(after, answer)).url
  const url = await urlOf(json(200, { id: 'text', rows }))
  const dead = `http://127.0.0.1:${await freePort()}`
  const routes = {
    shaped: {
      upstream: 'b',
      shape: 'plain',
      contract: { file: 'contract.json', mode: 'observe' },
      parts: { missing: { upstream: 'dead', rewrite: '/', into: 'missing', required: false } }
    },
    long: { shape: 'plain' },
    full: { upstream: 'full' },
    slow: { upstream: 'slow' },
    pair: { upstream: 'pair' },
    limited: { upstream: 'slow' },
    events: { upstream: 'events' }
  }
  const few = { by: 'user', max: 1, window: '1h' }
  return {
    gateway: { audit },
    redis: { url: (await testRedis(after)).url, commandTimeout: '20s' },
    backend: url,
    routes: {
      upstreams: {
        events: { url: await urlOf(stream) },
        slow: { url: await urlOf(slow), connections: 1 },
        full: { url: await urlOf(slow), connections: 1, queue: 1 },
        pair: { url: [dead, url] },
        dead: { url: dead }
      },
      shapes: { plain: [{ rename: { other: 'another' } }] },
      routes
    },
    limits: {
      sizes: { shape: '16MiB' },
      limits: {
        few: { ...few, routes: ['limited'] },
        shadowed: { ...few, routes: ['slow'], mode: 'shadow' }
      },
      lockout: { accountAndAddress: { failures: 2 } }
    },
    code: { 'contract.json': JSON.stringify(schema) }
  }
}

/** Scrapes a gateway of one process with Redis, whose every part was used. */
export async function scrapeUsed(after: (undo: () => unknown) => void): Promise<string> {
  const gateway = await testGateway(after, await usedFiles(after))
  await gateway.ready()
  const cookie = await gateway.signIn()
  const get = (name: string) => gateway.call(`/api/${name}`, { cookie })
  await get('shaped')
  await get('long')
  await Promise.all([get('full'), get('full'), get('full'), get('slow'), get('slow')])
  for (let times = 0; times < 8; times++) await get('pair')
  for (let times = 0; times < 2; times++) await get('limited')
  for (let times = 0; times < 3; times++) await gateway.attempt('bob', { password: 'wrong' })
  const events = async (session: string) =>
    await fetch(`${gateway.url}/api/events`, { headers: { cookie: session } })
  const ended = await events(cookie)
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'alice' } })
  await ended.text().catch(() => '')
  const open = await events(await gateway.signIn())
  after(() => open.body?.cancel())
  await gateway.reload('operator')
  const text = async () => await gateway.metrics()
  await until('the contract was checked', async () => /deviations_total\{/.test(await text()))
  return await text()
}
