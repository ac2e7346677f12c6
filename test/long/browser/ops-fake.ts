/** The operators' API with invented answers, of any size, for tests of the page alone. */
import type { ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance } from 'fastify'
import { addPageFiles } from '../../../src/admin/page-files.ts'
import { answersOf, frameOf } from './ops-fake-data.ts'

export interface FakeOptions {
  readonly routes?: number
  readonly upstreams?: number
  readonly sessions?: number
  /** Stands in the place of names, paths, agents and messages. */
  readonly text?: string
  /** Of every act. */
  readonly effect?: Readonly<Record<string, unknown>>
  /** Folder of a built page. */
  readonly folder?: string
  /** Milliseconds between the frames of the live stream. */
  readonly frameMs?: number
}

export interface FakeOps {
  readonly url: string
  readonly app: FastifyInstance
  /** What the tests change while the page is open. */
  readonly state: {
    isSignedIn: boolean
    isDown: boolean
    /** Live streams so far. */
    streams: number
    /** Live streams that are open. */
    readonly open: () => number
    /** Ends those that are open, as a gateway does that is replaced. */
    readonly endStreams: () => void
  }
  /** Bodies of acts, in order. */
  readonly acts: Array<{ readonly path: string; readonly body: Record<string, unknown> }>
}

const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const actPaths = ['sessions/close', 'lockouts/lift', 'reload', 'maintenance', 'maintenance/end']

export async function fakeOps(
  cleanUp: (undo: () => unknown) => void,
  options: FakeOptions = {}
): Promise<FakeOps> {
  const { folder, frameMs = 1000, effect = { sessions: 3, users: 1 } } = options
  const app = Fastify({ forceCloseConnections: true })
  const open = new Set<ServerResponse>()
  const endStreams = () => {
    for (const stream of open) stream.end('event: end\ndata: {}\n\n')
  }
  const state = {
    isSignedIn: true,
    isDown: false,
    streams: 0,
    open: () => open.size,
    endStreams
  }
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
        code: 'login.refused'
      })
    }
    state.isSignedIn = true
    return {}
  })
  app.get('/ops/api/me', () => ({
    name: options.text ?? 'olivia',
    via: 'session',
    until: Date.now() + 3_600_000
  }))
  app.get('/ops/api/now/stream', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    state.streams++
    open.add(reply.raw)
    let number = 0
    const send = () => {
      reply.raw.write(`event: now\ndata: ${JSON.stringify(frameOf(options, number++))}\n\n`)
    }
    send()
    const timer = setInterval(() => {
      if (state.isDown || !state.isSignedIn) reply.raw.end()
      else send()
    }, frameMs)
    reply.raw.on('close', () => {
      open.delete(reply.raw)
      clearInterval(timer)
    })
  })
  for (const [path, answer] of Object.entries(answersOf(options))) {
    app.get(`/ops/api/${path}`, request => answer(request.query as Record<string, string>))
  }
  for (const path of actPaths) {
    app.post(`/ops/api/${path}`, request => {
      const body = request.body as Record<string, unknown>
      if (body['preview'] === true) {
        return { act: path.replace('/', '.'), effect, undo: null }
      }
      acts.push({ path, body })
      return { closed: 3 }
    })
  }
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  cleanUp(() => app.close())
  return { url, app, state, acts }
}
