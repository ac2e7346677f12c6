/** Case V3: the only address of an upstream that works restarts, again and again, under load. */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePort, freePorts } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { killable } from '../support/upstream-kills.ts'

const downMs = [20, 150, 50, 100, 20, 150, 75, 125]

t.test('case V3: eight restarts lose no GET, and nothing is executed twice', async t => {
  const executed = new Map<string, number>()
  const port = await freePort()
  const { start, kill } = await killable(port, ({ method, url = '' }) => {
    if (method !== 'POST') return
    executed.set(url, (executed.get(url) ?? 0) + 1)
  })
  t.after(kill)
  const route = { methods: ['GET', 'POST'], access: 'public' }
  const gateway = await testGateway(t.after, {
    backend: `http://127.0.0.1:${port}`,
    routes: { routes: { collected: route } }
  })
  const over = new AbortController()
  let count = 0
  const lost: string[] = []
  const answered = Array<number>(6).fill(0)
  const load = async (json: object | undefined, index: number) => {
    while (!over.signal.aborted) {
      const { status, text } = await gateway.call(`/api/collected?id=${count++}`, { json })
      if (json === undefined && status !== 200) lost.push(`${status} ${text}`)
      answered[index]!++
    }
  }
  const change = { change: true }
  const bodies = [undefined, undefined, undefined, undefined, change, change]
  const loads = bodies.map(load)
  /** What was under way at a restart is answered: no request meets two of them. */
  const settled = async () => {
    const before = [...answered]
    await until('all are answered', () => answered.every((each, index) => each > before[index]!))
  }
  for (const ms of downMs) {
    await settled()
    await kill()
    await wait(ms)
    await start()
  }
  await settled()
  over.abort()
  await Promise.all(loads)
  t.same(lost, [], `of ${count} requests`)
  t.ok(executed.size > downMs.length)
  t.same([...new Set(executed.values())], [1])
})

t.test('case V3: the only address that works restarts, and others are dead', async t => {
  const [port = 0, ...dead] = await freePorts(3)
  const { start, kill } = await killable(port, () => {})
  t.after(kill)
  const gateway = await testGateway(t.after, {
    backend: { url: [port, ...dead].map(each => `http://127.0.0.1:${each}`) },
    routes: { routes: { plain: { access: 'public' } } }
  })
  for (let count = 0; count < 6; count++) t.equal(await gateway.status('/api/plain'), 200)
  await kill()
  const asked = Promise.all(Array.from({ length: 6 }, () => gateway.status('/api/plain')))
  await wait(100)
  await start()
  t.same(await asked, Array(6).fill(200))
})
