/** WebSocket: what a message costs on its way, beside a relay made of the library `ws` at both ends. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { startGatewayProcess } from '../test/support/gateway-process.ts'
import { cpuMicros } from './accounting.ts'
import type { Outcome, Stage } from './cases.ts'
import { figure, paired } from './rounds.ts'

const connections = 32
const sizes = [64, 4096]

interface Contestant {
  readonly label: string
  readonly pid: number
  readonly url: string
}

/** The library's own relay, and the upstream of both, in processes of their own. */
async function startPeer(
  mode: 'echo' | 'relay',
  upstream = ''
): Promise<Contestant & { child: ChildProcess }> {
  const child = fork(new URL('peers/websocket.ts', import.meta.url), [mode, upstream])
  const [port] = (await once(child, 'message')) as [number]
  return {
    label: 'relay of ws ↔ ws',
    pid: child.pid ?? 0,
    url: `ws://127.0.0.1:${port}/chat`,
    child
  }
}

export async function webSocket({ rounds, ms }: Pick<Stage, 'rounds' | 'ms'>): Promise<Outcome> {
  const undo: Array<() => unknown> = []
  try {
    const upstream = await startPeer('echo')
    undo.push(() => upstream.child.kill())
    const relay = await startPeer('relay', upstream.url)
    undo.push(() => relay.child.kill())
    const contestants = [await startGateway(upstream.url, fn => undo.push(fn)), relay]
    const rows: Array<Outcome['rows'][number]> = []
    for (const bytes of sizes) rows.push(...(await measureSize(contestants, bytes, rounds, ms)))
    return {
      title: `WebSocket: ${connections} connections that echo, each message relayed twice`,
      columns: ['CPU µs a relayed message', 'ratio to ws ↔ ws', 'messages/s'],
      rows,
      verdicts: []
    }
  } finally {
    for (const each of undo.toReversed()) await each()
  }
}

async function startGateway(
  upstream: string,
  cleanUp: (undo: () => unknown) => void
): Promise<Contestant> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  cleanUp(() => rmSync(folder, { recursive: true, force: true }))
  const write = (name: string, content: object) =>
    writeFileSync(join(folder, name), JSON.stringify(content))
  write('gateway.yaml', {
    server: { listen: '127.0.0.1:0' },
    ops: { listen: '127.0.0.1:0' },
    session: { cookie: { secure: false } }
  })
  const chat = { path: '/chat', upstream: 'b', access: 'public', websocket: { perUser: 1000 } }
  const url = `http://${new URL(upstream).host}`
  write('routes.yaml', { upstreams: { b: { url } }, routes: { chat } })
  write('users.yaml', { users: {} })
  write('limits.yaml', {
    inFlightPerUser: 1000,
    limits: { all: { by: 'address', max: 1_000_000, window: '1m' } }
  })
  const checkout = join(import.meta.dirname, '..')
  const gateway = await startGatewayProcess(cleanUp, { checkout, folder })
  const at = `${gateway.url.replace('http', 'ws')}/chat`
  return { label: 'gateway', pid: gateway.pid, url: at }
}

/** By turns; the first round warms up. */
async function measureSize(
  contestants: readonly Contestant[],
  bytes: number,
  rounds: number,
  ms: number
): Promise<Outcome['rows']> {
  const turns = contestants.map(() => ({ cpu: [] as number[], perSecond: [] as number[] }))
  for (let round = -1; round < rounds; round++) {
    for (const [index, contestant] of contestants.entries()) {
      const { cpuPerMessage, perSecond } = await turn(contestant, bytes, ms)
      if (round < 0) continue
      turns[index]?.cpu.push(cpuPerMessage)
      turns[index]?.perSecond.push(perSecond)
    }
  }
  const base = turns.at(-1)?.cpu ?? []
  return contestants.map(({ label }, index) => {
    const { cpu = [], perSecond = [] } = turns[index] ?? {}
    const ratio = paired(cpu, base, (own, other) => own / other)
    return { label: `${label}, ${bytes} B`, cells: [figure(cpu), ratio, figure(perSecond)] }
  })
}

async function turn({ pid, url }: Contestant, bytes: number, ms: number) {
  const payload = Buffer.alloc(bytes, 'x')
  let echoes = 0
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = new WebSocket(url, { perMessageDeflate: false })
      await once(socket, 'open')
      socket.on('message', () => {
        echoes++
        socket.send(payload)
      })
      return socket
    })
  )
  for (const socket of sockets) socket.send(payload)
  await new Promise(resolve => setTimeout(resolve, 200))
  const before = { cpu: cpuMicros(pid), at: performance.now(), echoes }
  await new Promise(resolve => setTimeout(resolve, ms))
  // There and back.
  const messages = (echoes - before.echoes) * 2
  const cpuPerMessage = (cpuMicros(pid) - before.cpu) / messages
  const perSecond = messages / ((performance.now() - before.at) / 1000)
  for (const socket of sockets) socket.terminate()
  return { cpuPerMessage, perSecond }
}
