/** Restarts with a socket that somebody else holds, as systemd does: no connection is lost. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { takeListenFds } from '../../src/process/server.ts'
import { configFolder } from '../support/gateway.ts'
import { opsJson } from '../support/ops.ts'
import { freePort, freePorts } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { again, until } from '../support/until.ts'

const holder = fileURLToPath(import.meta.resolve('../support/holder.js'))
const launch = fileURLToPath(import.meta.resolve('../../src/launch.js'))

t.test('descriptors by their names; those of another process are not taken', async t => {
  const environment = (pid: number) => ({
    LISTEN_PID: String(pid),
    LISTEN_FDS: '3',
    LISTEN_FDNAMES: 'console:redirect:ops',
    OTHER: 'x'
  })
  const own = environment(7)
  t.same(takeListenFds(own, 7), { console: 3, redirect: 4, ops: 5 })
  t.same(own, { OTHER: 'x' }, 'no child takes them')
  t.same(takeListenFds(environment(7), 8), {})
  t.same(takeListenFds({ LISTEN_PID: '7', LISTEN_FDS: '1' }, 7), { console: 3 })
  t.same(takeListenFds({}, 7), {})
})

interface Slot {
  readonly opsUrl: string
  readonly pid: () => Promise<number>
}

async function slotsOn(t: Test, port: number, count: number): Promise<Slot[]> {
  const redis = await testRedis(t.after)
  const { url } = await testUpstream(t.after)
  const slots: Slot[] = []
  for (const opsPort of await freePorts(count)) {
    const folder = await configFolder({
      gateway: {
        // The held socket is taken in place of it.
        server: { listen: '127.0.0.1:1' },
        ops: { listen: `127.0.0.1:${opsPort}` },
        drain: { notice: '300ms', grace: '5s' },
        log: { level: 'warn' }
      },
      redis: redis.url,
      backend: url,
      routes: { routes: { open: { access: 'public' } } },
      limits: { limits: {} }
    })
    const words = [holder, String(port), process.execPath, launch, 'start', '--config', folder]
    const running = spawn(process.execPath, words, {
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true
    })
    t.after(async () => {
      process.kill(-(running.pid ?? 0), 'SIGKILL')
      await once(running, 'exit')
    })
    const opsUrl = `http://127.0.0.1:${opsPort}`
    const pid = async () => (await opsJson(opsUrl, 'status')).pid as number
    await until('ready', async () => (await fetch(`${opsUrl}/readyz`)).status === 200)
    slots.push({ opsUrl, pid })
  }
  return slots
}

/** Calls without a pause, on one kept connection or on a new one each, until it is stopped. */
function callAgain(url: string, agent: Agent | false) {
  const outcomes = { answered: 0, lost: [] as string[] }
  const call = async () =>
    await new Promise<void>(resolve => {
      get(url, { agent }, response => {
        response.resume().once('end', () => {
          if (response.statusCode === 200) outcomes.answered++
          else outcomes.lost.push(String(response.statusCode))
          resolve()
        })
      }).once('error', (error: NodeJS.ErrnoException) => {
        outcomes.lost.push(error.code ?? error.message)
        resolve()
      })
    })
  return { outcomes, stop: again(call) }
}

for (const count of [1, 2]) {
  t.test(`five restarts under load, ${count} of a port`, async t => {
    const port = await freePort()
    const slots = await slotsOn(t, port, count)
    const url = `http://127.0.0.1:${port}/api/open`
    const agents = Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
    const kept = agents.map(agent => callAgain(url, agent))
    const fresh = [1, 2].map(() => callAgain(url, false))
    for (let restart = 0; restart < 5; restart++) {
      const slot = slots[restart % count] as Slot
      const pid = await slot.pid()
      const before = kept.map(({ outcomes }) => outcomes.answered)
      await until('each has answers', () =>
        kept.every(({ outcomes }, index) => outcomes.answered > (before[index] ?? 0) + 20)
      )
      process.kill(pid, 'SIGTERM')
      await until('the next one runs', async () => (await slot.pid()) !== pid)
    }
    await Promise.all([...kept, ...fresh].map(({ stop }) => stop()))
    for (const agent of agents) agent.destroy()
    const sum = (all: typeof kept) =>
      all.reduce((total, { outcomes }) => total + outcomes.answered, 0)
    t.comment(`${sum(kept)} on kept connections, ${sum(fresh)} on new ones`)
    t.same(
      [...kept, ...fresh].flatMap(({ outcomes }) => outcomes.lost),
      []
    )
    t.ok(sum(kept) > 500 && sum(fresh) > 100)
  })
}
