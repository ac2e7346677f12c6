/** Attacks on the operators' listener, with real sockets. */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { standstill } from '../../support/machine.ts'
import { callOps, signInToOps } from '../../support/operator.ts'
import { open } from '../../support/raw.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { testRedis } from '../../support/redis.ts'

const ops = { role: 'admin' }
const me = '/ops/api/me'
const { opsUrl } = await testGateway(t.teardown, { gateway: { ops } })

/** What a client gets that sends a byte each half second, and when the connection is closed. */
async function drip(start: string, more = 'a') {
  const began = performance.now()
  const { socket, closed: isOver, received } = await open(t.after, opsUrl)
  socket.write(start)
  const timer = setInterval(() => socket.write(more), 500)
  await isOver
  clearInterval(timer)
  return { seconds: (performance.now() - began) / 1000, status: received().slice(9, 12) }
}

t.test('slow headers are cut after 10 s, slow bodies after 30 s', async t => {
  const host = 'host: 127.0.0.1\r\n'
  const signIn = `POST /ops/ HTTP/1.1\r\nhost: ${opsUrl.slice(7)}\r\norigin: ${opsUrl}\r\n`
  const body = 'content-type: application/x-www-form-urlencoded\r\ncontent-length: 5000\r\n\r\na'
  const [headers, silent, ofSignIn, ofNobody] = await Promise.all([
    drip(`GET /healthz HTTP/1.1\r\n${host}x: `),
    drip('', ''),
    drip(signIn + body),
    drip(`POST /ops/api/reload HTTP/1.1\r\n${host}${body}`)
  ])
  t.match([headers.status, ofSignIn.status, ofNobody.status], ['408', '408', '401'])
  for (const { seconds } of [headers, silent]) t.ok(seconds >= 9.5 && seconds < 25, `${seconds} s`)
  for (const { seconds } of [ofSignIn, ofNobody]) t.ok(seconds > 25 && seconds < 45, `${seconds} s`)
})

t.test('an address that opens all connections it can leaves some to others', async t => {
  const { port } = new URL(opsUrl)
  const sockets = Array.from({ length: 1000 }, () =>
    connect({ port: Number(port), host: '127.0.0.1', localAddress: '127.0.0.2' })
  )
  t.after(() => sockets.forEach(socket => socket.destroy()))
  const cut = sockets.map(socket => new Promise(resolve => void socket.on('close', resolve)))
  for (const socket of sockets) socket.on('error', () => {}).resume()
  const began = performance.now()
  const stoodStillMs = standstill()
  const health = await fetch(`${opsUrl}/healthz`)
  t.equal(health.status, 200)
  const ms = performance.now() - began
  t.ok(ms < 5000 + stoodStillMs(), 'before the others are cut for their slow headers')
  await Promise.race(cut)
  t.ok(sockets.filter(({ destroyed }) => !destroyed).length >= 250)
})

t.test('what somebody plants in Redis makes nobody an operator', async t => {
  const { url, port } = await testRedis(t.after)
  const gateway = await testGateway(t.after, { gateway: { ops }, redis: url })
  await gateway.signIn()
  const { cookie } = await signInToOps(gateway.opsUrl)
  const statusOf = async (each: string) =>
    (await callOps(gateway.opsUrl, me, { headers: { cookie: each.trim() } })).status
  t.equal(await statusOf(cookie), 200)
  const keys = (await redisCli(port, 'keys', '*')).split('\n')
  const session = keys.find(key => key.startsWith('{cg}:s:')) ?? ''
  await redisCli(port, 'zadd', '{cg}:operator-sign-outs', '-5', 'x', 'nan-sense', 'y')
  const forged = [
    `console_ops=${await redisCli(port, 'get', session)}`,
    `console_ops=${randomBytes(90).toString('base64url')}`,
    cookie.slice(0, -2),
    `${cookie}A`
  ]
  for (const each of forged) t.equal(await statusOf(each), 401, each)
})
