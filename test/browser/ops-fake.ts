/** The operators' API with invented answers, of any size, for tests of the page alone. */
import Fastify, { type FastifyInstance } from 'fastify'
import { addPageFiles } from '../../src/admin/page-files.ts'

export interface FakeOptions {
  readonly routes?: number
  readonly upstreams?: number
  readonly sessions?: number
  /** Stands in the place of names, paths, agents and messages. */
  readonly text?: string
  /** Folder of a built page. */
  readonly folder?: string
  /** Milliseconds between the frames of the live stream. */
  readonly frameMs?: number
}

export interface FakeOps {
  readonly url: string
  readonly app: FastifyInstance
  /** What the tests change while the page is open. */
  readonly state: { isSignedIn: boolean; isDown: boolean }
  /** Bodies of acts, in order. */
  readonly acts: Array<{ readonly path: string; readonly body: Record<string, unknown> }>
}

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

export async function fakeOps(
  cleanUp: (undo: () => unknown) => void,
  options: FakeOptions = {}
): Promise<FakeOps> {
  const { folder, frameMs = 1000 } = options
  const app = Fastify({ forceCloseConnections: true })
  const state = { isSignedIn: true, isDown: false }
  const acts: FakeOps['acts'] = []
  app.addHook('onRequest', async (request, reply) => {
    reply.header('content-security-policy', csp).header('x-content-type-options', 'nosniff')
    if (!request.url.startsWith('/ops/api/') || request.url === '/ops/api/sign-in') return
    if (state.isDown) return await reply.code(503).send({ error: 'Redis does not answer.' })
    if (!state.isSignedIn) {
      return await reply.code(401).send({ error: 'Please sign in.', code: 'ops.session' })
    }
  })
  addPageFiles(app, folder)
  app.post('/ops/api/sign-in', async (request, reply) => {
    const { password } = request.body as { readonly password: string }
    if (password !== 'right') {
      reply.header('x-request-id', 'request-1')
      return await reply.code(401).send({
        error: 'The user name or the password is wrong.',
        code: 'login.credentials'
      })
    }
    state.isSignedIn = true
    return {}
  })
  app.get('/ops/api/me', () => ({ name: options.text ?? 'olivia', via: 'session' }))
  app.get('/ops/api/now/stream', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    let number = 0
    const send = () => {
      reply.raw.write(`event: now\ndata: ${JSON.stringify(frameOf(options, number++))}\n\n`)
    }
    send()
    const timer = setInterval(() => {
      if (state.isDown || !state.isSignedIn) reply.raw.end()
      else send()
    }, frameMs)
    reply.raw.on('close', () => clearInterval(timer))
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  cleanUp(() => app.close())
  return { url, app, state, acts }
}

const names = ['orders', 'order', 'users', 'invoices', 'notices', 'reports', 'export', 'search']

function nameOf(index: number, text: string | undefined): string {
  return `${text ?? names[index % names.length]}${index < names.length ? '' : `-${index}`}`
}

/** A wave, so that charts move and tests know what comes. */
function waveOf(number: number, index: number): number {
  return 1 + 0.5 * Math.sin(number / 7 + index) + 0.2 * Math.sin(number / 2 + index * 3)
}

function frameOf({ routes = 8, upstreams = 3, text }: FakeOptions, number: number): object {
  const ofRoutes = Array.from({ length: routes }, (_, index) => {
    const wave = waveOf(number, index)
    return {
      route: nameOf(index, text),
      requestsPerSecond: (wave * 90) / (index + 1),
      errorShare: index === 3 ? 0.08 * wave : 0.002,
      p50Ms: 6 + index + wave * 2,
      p99Ms: 40 + index * 3 + wave * 20
    }
  })
  const total = ofRoutes.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0)
  return {
    at: new Date().toISOString(),
    replica: 'r1',
    requestsPerSecond: total,
    errorShare: 0.013 * waveOf(number, 1),
    inFlight: Math.round(12 * waveOf(number, 2)),
    queued: number % 20 > 15 ? 3 : 0,
    p50Ms: 8 * waveOf(number, 3),
    p99Ms: 70 * waveOf(number, 4),
    routes: ofRoutes,
    upstreams: Array.from({ length: upstreams }, (_, index) => ({
      upstream: text ?? ['backend', 'billing', 'search'][index % 3],
      address: `10.0.${index}.7:8080`,
      state: index === 1 ? 'down' : 'up',
      breaker: index === 1 ? 'open' : 'closed',
      ejected: index === 4,
      inFlight: index === 1 ? 0 : 4 + index,
      queued: 0,
      requestsPerSecond: 30,
      errorShare: index === 1 ? 1 : 0.004
    })),
    redis: { state: 'up', latencyMs: 0.4, since: new Date(Date.now() - 7_200_000).toISOString() },
    processes: [1, 2].map(worker => ({
      worker,
      pid: 4200 + worker,
      eventLoopDelayMs: 1.2 * waveOf(number, worker),
      rssBytes: 140_000_000 + worker * 9_000_000,
      cpu: 0.3 * waveOf(number, worker)
    })),
    replicas: ['r1', 'r2'].map(id => ({
      id,
      host: text ?? `gateway-${id.slice(1)}`,
      version: '0.2.0',
      configHash: '8c1f0e7ab2',
      ready: true,
      seenAt: new Date().toISOString()
    })),
    config: { generation: 3, hash: '8c1f0e7ab2', state: 'running' }
  }
}
