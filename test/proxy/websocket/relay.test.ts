/** The relay between real sockets: what each side gets, byte for byte, and how it ends. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { FrameTracker } from '../../../src/proxy/websocket/frames.ts'
import {
  type Ending,
  Relay,
  type RelayEnd,
  type RelayOptions
} from '../../../src/proxy/websocket/relay.ts'
import { listen } from '../../support/ports.ts'
import { until } from '../../support/until.ts'
import { frame } from '../../support/websocket.ts'

const patient: RelayOptions = {
  maxMessage: 1024 * 1024,
  mayCompress: false,
  pingMs: 600_000,
  idleMs: 600_000,
  stallMs: 600_000
}
const revoked: Ending = { code: 4401, reason: 'session.revoked', borderMs: 500 }
const revokedFrame = Buffer.from([0x88, 17, 0x11, 0x31, ...Buffer.from('session.revoked')])

/** Two ends of a connection, the first one as a server has it. */
async function pair(t: Test): Promise<[near: Socket, far: Socket]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true })
  const port = await listen(server)
  const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const [near] = (await once(server, 'connection')) as [Socket]
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    t.after(() => socket.destroy())
  }
  server.close()
  return [near, far]
}

interface Side {
  readonly socket: Socket
  readonly received: () => Buffer
  readonly hasEnded: () => boolean
  readonly isClosed: () => boolean
}

function sideOf(socket: Socket): Side {
  const pieces: Buffer[] = []
  const state = { hasEnded: false, isClosed: false }
  socket.on('data', piece => pieces.push(piece as Buffer))
  socket.on('end', () => (state.hasEnded = true))
  socket.on('close', () => (state.isClosed = true))
  return {
    socket,
    received: () => Buffer.concat(pieces),
    hasEnded: () => state.hasEnded,
    isClosed: () => state.isClosed
  }
}

async function open(t: Test, more: Partial<RelayOptions> = {}, first: Buffer = Buffer.alloc(0)) {
  const [[near, far], [up, upFar]] = await Promise.all([pair(t), pair(t)])
  const ends: RelayEnd[] = []
  const relay = new Relay(near, up, { ...patient, ...more }, end => ends.push(end))
  relay.start(first)
  return { relay, client: sideOf(far), upstream: sideOf(upFar), ends, near, up }
}

const toUpstream = (payload: string, opcode = 1) => frame({ opcode, payload, isMasked: true })
const toClient = (payload: string, opcode = 1) => frame({ opcode, payload, isMasked: false })
const has = (side: Side, bytes: Buffer) => side.received().equals(bytes)

t.test('bytes pass unchanged both ways, those that came with the 101 first', async t => {
  const first = toClient('first')
  const { client, upstream } = await open(t, {}, first)
  const [up, down] = [toUpstream('up'), Buffer.concat([toClient('a'), toClient('', 9)])]
  client.socket.write(up)
  upstream.socket.write(down)
  await until('both have all', () => has(upstream, up) && has(client, Buffer.concat([first, down])))
})

t.test('an end between two frames is told at once, and to the upstream too', async t => {
  const { relay, client, upstream, ends } = await open(t)
  const before = toClient('before')
  upstream.socket.write(before)
  await until('the frame is there', () => has(client, before))
  relay.end(revoked)
  relay.end({ ...revoked, code: 1012 })
  await until('the client is told', () => has(client, Buffer.concat([before, revokedFrame])))
  await until('the upstream is told', () => upstream.hasEnded())
  t.same(upstream.received(), Buffer.from([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]), '1001')
  upstream.socket.write(toClient('late'))
  client.socket.write(toUpstream('thrown away'))
  t.notOk(client.hasEnded(), 'it waits for the client’s answer')
  client.socket.write(toUpstream('\x11\x31', 8))
  await until('then it ends', () => client.hasEnded())
  client.socket.end()
  await until('it is over', () => ends.length === 1)
  t.match(ends, [{ by: 'gateway', ending: { code: 4401 }, toClient: 1, toUpstream: 0 }])
  t.ok(has(client, Buffer.concat([before, revokedFrame])), 'nothing followed the close frame')
})

t.test('an end within a frame waits for its border and cuts the chunk there', async t => {
  const { relay, client, upstream } = await open(t)
  const message = toClient('m'.repeat(50_000))
  upstream.socket.write(message.subarray(0, 20_000))
  await until('a part is there', () => client.received().length === 20_000)
  relay.end({ ...revoked, borderMs: 60_000 })
  // One chunk: the rest of the frame, and two that must not pass.
  upstream.socket.write(
    Buffer.concat([message.subarray(20_000), toClient('secret'), toClient('secret')])
  )
  const expected = Buffer.concat([message, revokedFrame])
  await until('the close frame', () => client.received().length >= expected.length)
  client.socket.end()
  await until('the end', () => client.hasEnded())
  t.ok(has(client, expected))
})

t.test('where the border does not come in time the connection is cut', async t => {
  const { relay, client, upstream, ends } = await open(t)
  const part = toClient('never whole').subarray(0, 5)
  upstream.socket.write(part)
  await until('a part is there', () => has(client, part))
  relay.end({ ...revoked, borderMs: 20 })
  await until('both are closed', () => client.isClosed() || client.hasEnded())
  t.ok(has(client, part), 'no close frame within a frame')
  await until('it is over', () => ends.length === 1)
})

t.test('an upstream in the middle of a client’s frame is told nothing', async t => {
  const { relay, client, upstream } = await open(t)
  const part = toUpstream('a message').subarray(0, 9)
  client.socket.write(part)
  await until('a part is there', () => has(upstream, part))
  relay.end(revoked)
  // The rest of it must not make the gateway believe that the upstream is at a border.
  client.socket.write(toUpstream('a message').subarray(9))
  await until('the upstream is let go', () => upstream.hasEnded() || upstream.isClosed())
  t.ok(has(upstream, part))
})

t.test('a flood at the end is read and thrown away, for 5 s at most', async t => {
  const { relay, client, upstream, ends } = await open(t)
  const flood = toUpstream('x'.repeat(60_000))
  const pour = () => {
    while (!client.socket.destroyed && client.socket.write(flood)) {}
  }
  client.socket.on('drain', pour)
  pour()
  await until('the flood flows', () => upstream.received().length > 1_000_000)
  const startedAt = performance.now()
  relay.end(revoked)
  await until('the client has its close frame in spite of it', () => has(client, revokedFrame))
  await until('a client that never stops is cut', () => ends.length === 1)
  const ms = performance.now() - startedAt
  t.ok(ms > 3000 && ms < 20_000, `after ${Math.round(ms)} ms`)
  client.socket.destroy()
})

t.test('what breaks the protocol ends both sides with its code', async t => {
  const cases: ReadonlyArray<readonly [string, Buffer, number]> = [
    ['not masked', frame({ opcode: 1, payload: 'x', isMasked: false }), 1002],
    ['a reserved opcode', toUpstream('x', 5), 1002],
    ['too large', frame({ opcode: 2, length: 2000, isMasked: true }), 1009]
  ]
  for (const [title, bytes, code] of cases) {
    const { client, upstream, ends } = await open(t, { maxMessage: 1000 })
    const good = toUpstream('good')
    client.socket.write(Buffer.concat([good, bytes, toUpstream('later')]))
    await until('the close frame', () => client.received().length > 3)
    t.same([client.received()[0], client.received().readUInt16BE(2)], [0x88, code], title)
    await until('the upstream ends', () => upstream.hasEnded())
    t.ok(
      upstream.received().subarray(0, good.length).equals(good),
      `${title}: what was good passed`
    )
    t.equal(upstream.received().length, good.length + 8, `${title}: then a close frame`)
    client.socket.end()
    await until('over', () => ends.length === 1)
    t.match(ends, [{ by: 'client', ending: { code } }])
  }
  const { client, upstream, ends } = await open(t, { maxMessage: 1000 })
  upstream.socket.write(frame({ opcode: 1, payload: 'x', isMasked: true }))
  await until('the close frame', () => client.received().length > 3)
  t.equal(client.received().readUInt16BE(2), 1011, 'a server that masks')
  await until('the upstream has its close frame', () => upstream.received().length === 8)
  t.equal(upstream.received().readUInt16BE(6), 1002, 'and is told why')
  client.socket.end()
  await until('over', () => ends.length === 1)
  t.match(ends, [{ by: 'upstream' }])
})

t.test('an upstream that is lost: 1011 between frames, a cut within one', async t => {
  const between = await open(t)
  between.upstream.socket.resetAndDestroy()
  await until('the client is told', () => between.client.received().length > 3)
  t.equal(between.client.received().readUInt16BE(2), 1011)
  const within = await open(t)
  const part = toClient('never whole').subarray(0, 5)
  within.upstream.socket.write(part)
  await until('a part is there', () => has(within.client, part))
  within.upstream.socket.resetAndDestroy()
  await until('the client is cut', () => within.client.hasEnded() || within.client.isClosed())
  t.ok(has(within.client, part))
  await until('over', () => within.ends.length === 1)
  t.match(within.ends, [{ by: 'upstream', ending: undefined }])
})

t.test('a client that is lost ends the upstream’s connection', async t => {
  for (const leave of ['resetAndDestroy', 'end', 'destroy'] as const) {
    const { client, upstream } = await open(t)
    client.socket[leave]()
    await until(`after ${leave}`, () => upstream.hasEnded() || upstream.isClosed())
  }
})

t.test('half-open: an upstream that answers no close frame holds nobody', async t => {
  const { client, upstream, ends } = await open(t)
  client.socket.write(toUpstream('\x03\xe8', 8))
  await until('it has the close frame', () => upstream.received().length > 0)
  await until('it is over', () => ends.length === 1, 30_000)
  t.match(ends, [{ by: 'client', ending: undefined }])
  t.ok(client.isClosed() || client.hasEnded())
})

t.test('pings stand between frames, and only in quiet', async t => {
  const { client, upstream } = await open(t, { pingMs: 50 })
  await until('pings', () => client.received().length >= 4)
  t.same(client.received().subarray(0, 2), Buffer.from([0x89, 0]))
  const message = toClient('m'.repeat(300))
  const tracker = new FrameTracker({ ...patient, isMasked: false })
  upstream.socket.write(message.subarray(0, 100))
  await until('a part', () => client.received().includes('mmm'))
  const atPart = client.received().length
  const quietUntil = performance.now() + 200
  await until('quiet within a frame', () => performance.now() > quietUntil)
  t.equal(client.received().length, atPart, 'no ping within a frame')
  upstream.socket.write(message.subarray(100))
  await until('pings again', () => client.received().length > atPart + 200 + 1)
  tracker.track(client.received())
  t.equal(tracker.fault, undefined, 'all of it are frames')
  t.equal(tracker.messages, 1)
})

t.test('a silent connection ends with 1001; a client that answers pings keeps it', async t => {
  const silent = await open(t, { pingMs: 50, idleMs: 200 })
  // A machine that stands still for a moment is not taken for a silent client.
  const alive = await open(t, { pingMs: 50, idleMs: 1000 })
  alive.client.socket.on('data', () => alive.client.socket.write(toUpstream('', 10)))
  const openedAt = performance.now()
  await until('the silent one is told', () => silent.client.received().includes('idle'))
  const close = silent.client.received().indexOf(0x88)
  t.equal(silent.client.received().readUInt16BE(close + 2), 1001)
  await until('it is longer than its idle time', () => performance.now() > openedAt + 1500)
  t.notOk(alive.client.received().includes('idle'))
  await until('pongs reach the upstream', () => alive.upstream.received().length > 0)
})

t.test('a slow reader holds little memory, stops the upstream, and is cut', async t => {
  const { client, upstream, ends, near } = await open(t, {
    maxMessage: 1024 ** 3,
    stallMs: 500
  })
  client.socket.pause()
  const piece = frame({ opcode: 2, length: 60_000, isMasked: false })
  let sent = 0
  const pour = () => {
    while (!upstream.socket.destroyed) {
      sent += piece.length
      if (!upstream.socket.write(piece)) return
    }
  }
  upstream.socket.on('drain', pour)
  pour()
  let most = 0
  await until('the reader is cut', () => {
    most = Math.max(most, near.writableLength)
    return ends.length === 1
  })
  t.ok(most < 256 * 1024, `at most ${Math.round(most / 1024)} KiB were held`)
  t.comment(`${Math.round(sent / 1024)} KiB were sent, most of it into buffers of the kernel`)
})

t.test('a reader that is slow but reads gets everything', async t => {
  const { client, upstream } = await open(t, { maxMessage: 1024 ** 3, stallMs: 60_000 })
  const message = frame({ opcode: 2, length: 20_000_000, isMasked: false })
  client.socket.pause()
  upstream.socket.write(message)
  const timer = setInterval(() => client.socket.resume(), 50)
  client.socket.on('data', () => client.socket.pause())
  t.after(() => clearInterval(timer))
  await until('some came', () => client.received().length > 0)
  client.socket.removeAllListeners('data')
  clearInterval(timer)
  const rest: Buffer[] = []
  const before = client.received().length
  client.socket.on('data', each => rest.push(each as Buffer)).resume()
  const size = () => rest.reduce((sum, each) => sum + each.length, before)
  await until('all came', () => size() === message.length)
})
