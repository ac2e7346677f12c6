/** What large uploads and downloads cost in memory, many at once. */
import { createServer, request } from 'node:http'
import { readFileSync } from 'node:fs'
import { pipeline, Readable } from 'node:stream'
import t from 'tap'
import { adopt } from '../../src/observability/emitters.ts'
import { listen } from '../support/ports.ts'
import { readyProcess } from '../support/session-process.ts'

const transfers = 20
/** More show more: TRANSFER_MB=500. */
const megabytes = Number(process.env['TRANSFER_MB'] ?? 20)
const bytes = megabytes * 1_000_000
/** Measured: 17 to 60 MB with 20 MB each, on a busy machine; 85 MB with 150 as with 500 MB each. */
const maxGrowthMB = 120
t.setTimeout(900_000)

/** A body without end in memory: one piece, again and again. */
function bodyOf(length: number): Readable {
  const piece = Buffer.alloc(64 * 1024, 'x')
  let left = length
  return adopt(
    new Readable({
      read() {
        const next = piece.subarray(0, Math.min(left, piece.length))
        left -= next.length
        this.push(next.length === 0 ? null : next)
      }
    })
  )
}

async function countBytes(readable: Readable): Promise<number> {
  let count = 0
  for await (const chunk of readable) count += (chunk as Buffer).length
  return count
}

t.test(`${2 * transfers} transfers of ${megabytes} MB at once: memory stays`, async t => {
  const server = createServer((incoming, response) => {
    if (incoming.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/zip', 'content-length': bytes })
      return void pipeline(bodyOf(bytes), response, () => {})
    }
    void countBytes(incoming).then(
      received => response.end(JSON.stringify({ received })),
      () => {}
    )
  })
  const port = await listen(server)
  t.after(() => server.close())
  const { gateway, signIn } = await readyProcess(t, {
    routes: {
      upstreams: { b: { url: `http://127.0.0.1:${port}` } },
      routes: {
        files: {
          path: '/api/files',
          upstream: 'b',
          methods: ['GET', 'POST'],
          maxBody: '2GiB',
          timeout: '1h'
        }
      }
    },
    limits: { inFlightPerUser: 200, limits: { user: { by: 'user', max: 100_000, window: '1m' } } }
  })
  const cookie = await signIn()

  const transfer = async (method: 'GET' | 'POST', length: number) =>
    await new Promise<Readable>((resolve, reject) => {
      const headers = { cookie, ...(method === 'POST' && { 'content-length': length }) }
      const asked = request(`${gateway.url}/api/files`, { method, agent: false, headers })
      asked.on('error', reject).on('response', response => resolve(adopt(response)))
      if (method === 'POST') pipeline(bodyOf(length), asked, () => {})
      else asked.end()
    })
  const upload = async (length: number) => {
    const [answer] = await (await transfer('POST', length)).toArray()
    return (JSON.parse(String(answer)) as { received: number }).received
  }
  const download = async () => await countBytes(await transfer('GET', 0))

  // What the first ones load and compile is no transfer's.
  for (let n = 0; n < 3; n++) t.equal(await upload(200_000), 200_000)
  const idle = await gateway.collect()
  let peak = 0
  const sample = setInterval(() => {
    const pages = Number(readFileSync(`/proc/${gateway.pid}/statm`, 'latin1').split(' ')[1])
    peak = Math.max(peak, pages * 4096)
  }, 20)
  t.after(() => clearInterval(sample))
  const startedAt = performance.now()
  const counts = await Promise.all(
    Array.from({ length: transfers }, () => [upload(bytes), download()]).flat()
  )
  const seconds = (performance.now() - startedAt) / 1000
  t.same([...new Set(counts)], [bytes], 'each came whole')
  const growthMB = (peak - idle.memory.rss) / 1e6
  t.comment(
    `${(idle.memory.rss / 1e6).toFixed(0)} MB idle, +${growthMB.toFixed(1)} MB at most, ${seconds.toFixed(1)} s`
  )
  t.ok(growthMB < maxGrowthMB, `+${growthMB.toFixed(1)} MB at most`)
})
