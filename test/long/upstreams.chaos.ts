/** Three addresses of one upstream under load, of which one is killed and started again and again. */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { again, until } from '../support/until.ts'
import { killable, streamedBytes } from '../support/upstream-kills.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 60)
const title =
  'an address killed each second: no collected GET fails, nothing is spliced or sent twice'

t.test(title, { timeout: (seconds + 120) * 1000 }, async t => {
  const asked = new Map<string, number>()
  const ports = await freePorts(3)
  const backends = await Promise.all(
    ports.map(port =>
      killable(port, ({ method, url = '' }) => {
        const line = `${method} ${url.split('id=')[1]}`
        asked.set(line, (asked.get(line) ?? 0) + 1)
      })
    )
  )
  t.after(() => Promise.all(backends.map(({ kill }) => kill())))
  const open = { methods: ['GET', 'POST'], access: 'public', rewrite: '/collected' }
  const gateway = await testGateway(t.after, {
    backend: { url: ports.map(port => `http://127.0.0.1:${port}`) },
    routes: {
      routes: {
        collected: open,
        shaped: { ...open, shape: 'data' },
        streamed: { ...open, rewrite: '/streamed' }
      },
      shapes: { data: [{ unwrap: 'data' }] }
    }
  })

  let kills = 0
  const killing = again(async () => {
    const next = wait(1000)
    const backend = backends[kills++ % backends.length]
    await backend?.kill()
    await backend?.start()
    await next
  })
  const failedGets: string[] = []
  const faults: string[] = []
  let requests = 0
  const collect = async (path: string, blocksOf: (json: any) => string) => {
    const { status, text, json } = await gateway.call(path)
    if (status !== 200) failedGets.push(`${status} ${text}`)
    else if (blocksOf(json).length % 16 > 0 || !isOfOne(blocksOf(json))) faults.push(text)
  }
  const asks: ReadonlyArray<(id: number) => Promise<unknown>> = [
    id => collect(`/api/collected?id=${id}`, ({ data }) => data.by),
    id => collect(`/api/shaped?id=${id}`, ({ by }) => by),
    async id => {
      const response = await fetch(`${gateway.url}/api/streamed?id=${id}`)
      if (response.status !== 200) failedGets.push(`${response.status} before its start`)
      let received = ''
      try {
        for await (const chunk of response.body ?? []) received += Buffer.from(chunk).toString()
        if (received.length !== streamedBytes) faults.push(`${received.length} bytes as a whole`)
      } catch {
        // It was cut.
      }
      if (!isOfOne(received)) faults.push('spliced')
    },
    id => gateway.call(`/api/collected?id=${id}`, { json: { id } })
  ]
  const loads = [...asks, ...asks].map(ask => again(() => ask(requests++)))
  await wait(seconds * 1000)
  await Promise.all([killing, ...loads].map(end => end()))

  t.same(failedGets, [], `of ${requests}`)
  t.same(faults, [])
  const timesOf = (method: string) =>
    [...asked].flatMap(([line, times]) => (line.startsWith(method) ? [times] : []))
  t.same([...new Set(timesOf('POST'))], [1], 'no POST reached two back-ends')
  const mostOften = Math.max(...timesOf('GET'))
  t.ok(mostOften <= 2, 'no GET was asked more than twice')
  await until('nothing is in flight', async () => {
    const metrics = await gateway.metrics()
    return metrics.includes('console_gateway_upstream_in_flight{upstream="b"} 0')
  })
  t.comment(`${requests} requests, ${kills} kills`)
})

/** Blocks of one process; the last one may be cut. */
function isOfOne(text: string): boolean {
  const block = text.slice(0, 16)
  return (
    block.length < 16 || text === block.repeat(Math.ceil(text.length / 16)).slice(0, text.length)
  )
}
