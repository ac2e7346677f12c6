/** Hooks that somebody adds by the diagnostics channel of Fastify, as agents of tracing do. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const seen: string[] = []

function addHooks(message: unknown): void {
  const { fastify } = message as { readonly fastify: FastifyInstance }
  fastify.addHook('onSend', async (_request, reply) => {
    reply.header('x-plugin', 'was here')
  })
  fastify.addHook('onResponse', async ({ method, url }, { statusCode }) => {
    seen.push(`${method} ${url} ${statusCode}`)
  })
}

const requests: ReadonlyArray<readonly [method: string, path: string, status: number]> = [
  ['GET', '/api/plain', 200],
  ['HEAD', '/api/plain', 200],
  ['POST', '/api/plain', 200],
  ['GET', '/api/shaped', 200],
  ['GET', '/api/mine', 401],
  ['GET', '/api/account/profile', 401],
  ['DELETE', '/api/plain', 405],
  ['GET', '/api/nothing', 404]
]

t.test('onSend and onResponse hooks of a plugin run for every response', async t => {
  subscribe('fastify.initialization', addHooks)
  t.after(() => unsubscribe('fastify.initialization', addHooks))
  const backend = await testUpstream(t.after, json(200, { a: 1 }))
  const { call } = await testGateway(t.after, {
    backend: backend.url,
    routes: {
      routes: {
        plain: { access: 'public', methods: ['GET', 'POST'] },
        shaped: { access: 'public', shape: 's' },
        mine: {}
      },
      shapes: { s: [{ pick: ['a'] }] }
    }
  })
  for (const [method, path, status] of requests) {
    const answer = await call(path, { method, ...(method === 'POST' && { json: {} }) })
    t.equal(answer.status, status, `${method} ${path}`)
    t.equal(answer.headers.get('x-plugin'), 'was here', `${method} ${path}`)
  }
  await until('the last response is over', () => seen.length === requests.length)
  t.same(
    seen,
    requests.map(([method, path, status]) => `${method} ${path} ${status}`)
  )
})
