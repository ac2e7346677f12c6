/** What is asked again and what never is, counted at the back-ends. */
import type { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { createUpstream } from '../../src/proxy/upstream.ts'
import { sendStreamed, trackedUpstream } from '../support/tracked-upstream.ts'
import { rawUpstream } from '../support/upstream.ts'
import { upstreamConfig } from '../support/upstream-config.ts'

type Written = Record<string, unknown>

function upstreamOf(t: Test, written: Written) {
  const upstream = createUpstream(upstreamConfig(t.after, written))
  t.after(() => upstream.close())
  return upstream
}

const options = { method: 'GET', path: '/', headers: {}, timeoutMs: 5000, maxBytes: 100_000 }

const whole = (socket: Socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole')
const half = (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
const broken = (socket: Socket) => socket.destroy()

t.test('GET, HEAD and OPTIONS are asked again at another address, and once', async t => {
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    const bad = await rawUpstream(t.after, broken)
    const good = await rawUpstream(t.after, socket => {
      socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
    const upstream = upstreamOf(t, { url: [bad.url, good.url] })
    for (let count = 0; count < 20; count++) {
      t.match(await upstream.fetchWhole({ ...options, method }), { status: 204 }, method)
    }
    t.equal(good.requests(), 20)
    t.ok(bad.requests() > 0)
    const none = upstreamOf(t, { url: [bad.url, (await rawUpstream(t.after, broken)).url] })
    const before = bad.requests()
    await t.rejects(none.fetchWhole({ ...options, method }), { code: 'upstream.reset' })
    t.equal(bad.requests(), before + 1, 'each of two was asked once')
  }
})

t.test('no other request is asked again, nor one with a body', async t => {
  const cases: Array<[method: string, body?: string]> = [
    ['POST'],
    ['PUT', 'x'],
    ['PATCH', 'x'],
    ['DELETE'],
    ['GET', 'x'],
    ['OPTIONS', 'x']
  ]
  for (const [method, body] of cases) {
    const [one, two] = [await rawUpstream(t.after, broken), await rawUpstream(t.after, broken)]
    const upstream = upstreamOf(t, { url: [one.url, two.url] })
    const request = { ...options, method, ...(body !== undefined && { body }) }
    for (let count = 0; count < 5; count++) {
      await t.rejects(upstream.fetchWhole(request), { code: 'upstream.reset' })
    }
    t.equal(one.requests() + two.requests(), 5, `${method} ${body ?? ''}`)
  }
})

t.test(
  'a collected response that breaks in the middle is asked again, and never spliced',
  async t => {
    const bad = await rawUpstream(t.after, half)
    const good = await rawUpstream(t.after, whole)
    const upstream = upstreamOf(t, { url: [bad.url, good.url] })
    for (let count = 0; count < 20; count++) {
      const { body } = await upstream.fetchWhole(options)
      t.equal(body.toString(), 'whole')
    }
    t.ok(bad.requests() > 0)
  }
)

t.test('a streamed response that breaks is cut, and its request goes nowhere else', async t => {
  const start = 'a'.repeat(5000)
  const streamed = (socket: Socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n${start}`)
    setImmediate(() => socket.end())
  }
  const [one, two] = [await rawUpstream(t.after, streamed), await rawUpstream(t.after, streamed)]
  const upstream = upstreamOf(t, { url: [one.url, two.url] })
  const response = await sendStreamed(upstream, options)
  const { body } = response ?? {}
  let received = ''
  await t.rejects(async () => {
    for await (const chunk of body as AsyncIterable<Buffer>) received += chunk.toString()
  })
  t.equal(received, start)
  t.equal(one.requests() + two.requests(), 1)
})

t.test('a kept connection that the back-end has closed loses no request', async t => {
  // As servers do after an idle time; the FIN is on its way before the request.
  const backend = await rawUpstream(t.after, socket => {
    whole(socket)
    socket.end()
  })
  const upstream = upstreamOf(t, { url: backend.url })
  for (let count = 0; count < 100; count++) {
    t.match(await upstream.fetchWhole({ ...options, method: 'POST', body: 'x' }), { status: 200 })
  }
  t.equal(backend.requests(), 100)
})

t.test('a client that left before its request was sent says nothing of the address', async t => {
  const backend = await rawUpstream(t.after, whole)
  const { upstream, transitions } = trackedUpstream(t.after, { url: backend.url })
  const left = new GatewayError('request.malformed')
  const signal = AbortSignal.abort(left)
  await t.rejects(upstream.fetchWhole({ ...options, signal }), { code: left.code })
  t.match(await upstream.fetchWhole(options), { status: 200 })
  t.same(transitions, [])
  t.equal(backend.requests(), 1)
})
