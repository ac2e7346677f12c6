/** The load generator, in a process of its own: does one run at a time, as it is told, and says how it went. */
import { createHistogram } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import { Client, type Dispatcher } from 'undici'
import { cpuMicros, residentMegabytes } from './accounting.ts'

export interface Request {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Bytes of its body. */
  readonly bytes: number
}

export interface Run {
  readonly origin: string
  /** One a connection. */
  readonly requests: readonly Request[]
  /** The process whose CPU time is read when measuring begins and when it ends. */
  readonly pid: number
  readonly warmMs: number
  /** For so long at most, … */
  readonly ms: number
  /** … or until so many have been answered. */
  readonly count?: number
}

/** What was measured in one run. */
export interface Sample {
  /** Of a request. */
  readonly cpuMicros: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly megabytes: number
}

const piece = Buffer.alloc(64 * 1024, 'x')

function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= piece.length) yield piece.subarray(0, left)
}

/** @returns the status, once the body has been read */
function call(client: Client, { method, path, headers, bytes }: Request): Promise<number> {
  let status = 0
  const body = bytes === 0 ? null : Readable.from(pieces(bytes))
  return new Promise((resolve, reject) => {
    client.dispatch({ method, path, headers: { ...headers }, body }, {
      onRequestStart: () => {},
      onResponseStart: (_controller, code) => {
        status = code
      },
      onResponseData: () => {},
      onResponseEnd: () => resolve(status),
      onResponseError: (_controller, error) => reject(error)
    } satisfies Dispatcher.DispatchHandler)
  })
}

/** @throws for any answer but 200 */
async function run({ origin, requests, pid, warmMs, ms, count = Infinity }: Run): Promise<Sample> {
  const times = createHistogram()
  let [begun, done] = [0, 0]
  const over = new AbortController()
  let mark = { cpu: cpuMicros(pid), at: performance.now() }
  const measure = () => {
    begun = done = 0
    times.reset()
    mark = { cpu: cpuMicros(pid), at: performance.now() }
  }
  const keepCalling = async (request: Request) => {
    const client = new Client(origin, { bodyTimeout: 60_000, headersTimeout: 60_000 })
    while (!over.signal.aborted && begun++ < count) {
      const at = performance.now()
      const status = await call(client, request)
      if (status !== 200) throw new Error(`${origin}${request.path} answered ${status}`)
      times.record(Math.max(1, Math.round((performance.now() - at) * 1e6)))
      done++
    }
    await client.destroy()
  }
  const begin = warmMs > 0 ? setTimeout(measure, warmMs) : undefined
  const end = setTimeout(() => over.abort(), warmMs + ms)
  await Promise.all(requests.map(keepCalling))
  clearTimeout(begin)
  clearTimeout(end)
  return {
    cpuMicros: (cpuMicros(pid) - mark.cpu) / done,
    perSecond: (done * 1000) / (performance.now() - mark.at),
    p50Ms: times.percentile(50) / 1e6,
    p99Ms: times.percentile(99) / 1e6,
    megabytes: residentMegabytes(pid)
  }
}

process.on('message', (wanted: Run) => {
  void run(wanted).then(ran => process.send?.(ran))
})
process.once('disconnect', () => process.exit())
