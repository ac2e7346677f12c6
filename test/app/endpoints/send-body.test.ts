/** A response that is sent past Fastify's sending: which value each of its headers has. */
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import Fastify, { type FastifyReply } from 'fastify'
import t, { type Test } from 'tap'
import { sendBody } from '../../../src/app/endpoints/send-body.ts'
import { Trail } from '../../../src/observability/trail.ts'
import { seed } from '../../support/seed.ts'

const standard = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

interface Case {
  readonly body?: Buffer | string
  readonly prepare?: (reply: FastifyReply) => unknown
  readonly more?: Record<string, string | string[]>
}

/** An app that sends one body for each case, and what arrives of it on a socket. */
async function start(t: Test) {
  let current: Case = {}
  const app = Fastify({ genReqId: () => 'req-1' })
  t.teardown(() => app.close())
  app.decorateReply('standardHeaders', { getter: () => standard })
  app.decorateReply('stallMs', 1000)
  app.decorateRequest('trail', null as never)
  app.get('/', (request, reply) => {
    request.trail = new Trail(request.id, request.method, request.url, request.ip)
    const { body = 'body', prepare, more } = current
    prepare?.(reply)
    sendBody(reply, body, more)
  })
  app.setErrorHandler((error: NodeJS.ErrnoException, _request, reply) => {
    reply.code(502).send(error.code)
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const { port } = app.server.address() as AddressInfo
  return async (next: Case) => {
    current = next
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    get({ port, agent: false }, resolve).on('error', reject)
    const response = await promise
    const chunks = await response.toArray()
    const lines = response.rawHeaders
    return {
      status: response.statusCode,
      body: Buffer.concat(chunks).toString(),
      /** Each line by itself, in lower case, without what Node adds. */
      lines: lines
        .flatMap((name, index) =>
          index % 2 === 0 ? [`${name.toLowerCase()}: ${lines[index + 1]}`] : []
        )
        .filter(line => !/^(?:date|connection|keep-alive):/.test(line))
        .toSorted()
    }
  }
}

const usual = [
  'cache-control: no-store',
  'content-length: 4',
  'content-type: application/octet-stream',
  'x-content-type-options: nosniff',
  'x-request-id: req-1'
]

t.test('a response has the standard headers, its length, its id and a type', async t => {
  const send = await start(t)
  t.strictSame(await send({}), { status: 200, body: 'body', lines: usual })
})

t.test('the reply’s headers win over the standard ones and over the type', async t => {
  const send = await start(t)
  const { lines } = await send({
    prepare: reply =>
      reply.headers({ 'cache-control': 'private', 'content-type': 'text/plain', 'x-own': '' })
  })
  t.strictSame(lines, [
    'cache-control: private',
    'content-length: 4',
    'content-type: text/plain',
    'x-content-type-options: nosniff',
    'x-own: ',
    'x-request-id: req-1'
  ])
})

t.test('the response’s own headers win over the reply’s and over the standard ones', async t => {
  const send = await start(t)
  const { lines } = await send({
    prepare: reply =>
      reply.headers({ 'content-type': 'text/plain', 'x-own': 'reply', 'x-reply': 'reply' }),
    more: { 'cache-control': 'public', 'content-type': 'application/json', 'x-own': 'more' }
  })
  t.strictSame(lines, [
    'cache-control: public',
    'content-length: 4',
    'content-type: application/json',
    'x-content-type-options: nosniff',
    'x-own: more',
    'x-reply: reply',
    'x-request-id: req-1'
  ])
})

t.test('an empty value wins as any other does', async t => {
  const send = await start(t)
  const prepare = (reply: FastifyReply) => reply.header('cache-control', '')
  t.ok((await send({ prepare })).lines.includes('cache-control: '))
  t.ok((await send({ more: { 'cache-control': '' } })).lines.includes('cache-control: '))
})

t.test('the length is that of the body in bytes, whatever the headers say', async t => {
  const send = await start(t)
  const lying = {
    prepare: (reply: FastifyReply) => reply.header('content-length', 1),
    more: { 'content-length': '2' }
  }
  for (const body of ['é', Buffer.from('é'), 'x'.repeat(20_000), Buffer.alloc(20_000, 'x')]) {
    const sent = await send({ ...lying, body })
    const length = Buffer.byteLength(body)
    t.strictSame(
      sent.lines.filter(line => line.startsWith('content-length')),
      [`content-length: ${length}`]
    )
    t.equal(sent.body, body.toString())
  }
})

t.test('cookies have a line each; the response’s own replace the reply’s', async t => {
  const send = await start(t)
  const prepare = (reply: FastifyReply) => reply.header('set-cookie', ['a=1', 'b=2'])
  const cookies = async (next: Case) =>
    (await send(next)).lines.filter(line => line.startsWith('set-cookie'))
  t.strictSame(await cookies({ prepare }), ['set-cookie: a=1', 'set-cookie: b=2'])
  const more = { 'set-cookie': ['c=3', 'd=4'] }
  t.strictSame(await cookies({ prepare, more }), ['set-cookie: c=3', 'set-cookie: d=4'])
})

t.test('a header that Node refuses becomes an error response', async t => {
  const send = await start(t)
  const { status, body } = await send({ more: { 'x-bad': 'a\nb' } })
  t.strictSame([status, body], [502, 'ERR_INVALID_CHAR'])
})

t.test('each header is that of the strongest source, once, for generated headers', async t => {
  const send = await start(t)
  const names = [...Object.keys(standard), 'content-type', 'x-a', 'x-b', 'constructor']
  const headers = fc.dictionary(fc.constantFrom(...names), fc.constantFrom('', '1', '2'))
  const property = fc.asyncProperty(headers, headers, async (own, more) => {
    const { lines } = await send({ prepare: reply => reply.headers(own), more })
    const strongest = Object.entries({
      'content-type': 'application/octet-stream',
      ...standard,
      'x-request-id': 'req-1',
      ...own,
      ...more,
      'content-length': '4'
    })
    return (
      lines.join('\n') ===
      strongest
        .map(pair => pair.join(': '))
        .toSorted()
        .join('\n')
    )
  })
  await fc.assert(property, { numRuns: 300, seed })
})
