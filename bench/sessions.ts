/** Growth: what a session costs in Redis, and whether sign-in, look-up and revocation cost the same among a million as among a thousand. */
import { identityKey } from '../src/session/identity-key.ts'
import { openReplica, opening, readyClient, startRedis } from './session-replica.ts'

const sizes = (process.argv[2] ?? '1000,1000000').split(',').map(Number)
const samples = 2000
const port = 20_000 + (process.pid % 20_000)

const endRedis = await startRedis(port)
const opened: Array<() => void> = []

async function replica() {
  const { sessions, close } = await openReplica({ port })
  opened.push(close)
  return sessions
}

const [a, b] = [await replica(), await replica()]
const admin = await readyClient(port)
opened.push(() => admin.disconnect())
const used = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
const commands = async () =>
  Number(/total_commands_processed:(\d+)/.exec(await admin.info('stats'))?.[1])

/** @returns p50 / p99 in milliseconds */
async function timed(work: (n: number) => Promise<unknown>, times = samples): Promise<string> {
  const took: number[] = []
  for (let n = 0; n < times; n++) {
    const began = performance.now()
    await work(n)
    took.push(performance.now() - began)
  }
  took.sort((x, y) => x - y)
  return `${took[Math.floor(times / 2)]?.toFixed(2)} / ${took[Math.floor(times * 0.99)]?.toFixed(2)}`
}

const empty = await used()
let there = 0
const rows: string[][] = []
for (const size of sizes) {
  while (there < size) {
    const batch = Math.min(200, size - there)
    await Promise.all(
      Array.from({ length: batch }, (_, n) => a.open(`id-${there + n}`, opening(there + n)))
    )
    there += batch
    if (there % 100_000 === 0) process.stderr.write(`${there} sessions\n`)
  }
  const bytes = ((await used()) - empty) / there
  const some = () => Math.floor(Math.random() * size)
  const signIn = await timed(n => a.open(`sample-${size}-${n}`, opening(10_000_000 + size + n * 2)))
  // A replica that remembers nothing yet, and ids that are not asked for twice.
  const fresh = await replica()
  const stride = Math.max(1, Math.floor(size / samples))
  const lookUp = await timed(n => fresh.get(`id-${n * stride}`), Math.min(samples, size))
  const known = `id-${some()}`
  await b.get(known)
  const before = await commands()
  for (let n = 0; n < 10_000; n++) await b.get(known)
  const spent = (await commands()) - before
  // Closed at one replica: how long until the other, which remembers it, refuses it.
  const lag: number[] = []
  for (let n = 0; n < samples; n++) {
    const id = `sample-${size}-${n}`
    await b.get(id)
    await a.close(id, 'revoked')
    const closed = performance.now()
    while ('live' in (await b.get(id))) await new Promise(resolve => setImmediate(resolve))
    lag.push(performance.now() - closed)
  }
  lag.sort((x, y) => x - y)
  const list = await timed(() => a.list(identityKey(opening(some()))))
  rows.push([
    size.toLocaleString('en'),
    bytes.toFixed(0),
    signIn,
    lookUp,
    list,
    `${lag[samples / 2]?.toFixed(2)} / ${lag[Math.floor(samples * 0.99)]?.toFixed(2)}`,
    (spent / 10_000).toFixed(4)
  ])
}
process.stdout.write(
  `| Sessions | Bytes each | Sign-in ms p50/p99 | First look-up ms p50/p99 | List of a user ms p50/p99 | Closed elsewhere, seen after ms p50/p99 | Redis commands per repeated request |\n|---|---|---|---|---|---|---|\n${rows.map(row => `| ${row.join(' | ')} |`).join('\n')}\n`
)
for (const end of opened) end()
endRedis()
