/** The load generator, in a process of its own: does one run at a time, as it is told, and says how it went. */
import { createHistogram } from 'node:perf_hooks'
import { Client, type Dispatcher } from 'undici'
import { cpuMicros } from './accounting.ts'

export interface Request {
  readonly method: 'GET'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
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

export interface Ran {
  /** While it was measured. */
  readonly requests: number
  /** In all, the warm-up too. */
  readonly answered: number
  readonly seconds: number
  readonly cpuMicros: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** By status, or the name of the failure. */
  readonly refused: Readonly<Record<string, number>>
}

async function run({ origin, requests, pid, warmMs, ms, count }: Run): Promise<Ran> {
  const clients = requests.map(
    () =>
      new Client(origin, {
        pipelining: 1,
        keepAliveTimeout: 60_000,
        bodyTimeout: 60_000,
        headersTimeout: 60_000
      })
  )
  const times = createHistogram()
  const refused: Record<string, number> = {}
  let done = 0
  let begun = 0
  let answered = 0
  let state: 'warming' | 'measuring' | 'over' = 'warming'
  let mark = { cpu: 0, at: 0 }
  let result: { cpu: number; seconds: number; done: number } | undefined
  let finish = () => {}
  const finished = new Promise<void>(resolve => {
    finish = resolve
  })

  const measure = () => {
    state = 'measuring'
    done = begun = 0
    times.reset()
    mark = { at: performance.now(), cpu: cpuMicros(pid) }
  }
  const end = () => {
    if (state === 'over') return
    state = 'over'
    result = { cpu: cpuMicros(pid) - mark.cpu, seconds: (performance.now() - mark.at) / 1000, done }
    finish()
  }

  const send = (client: Client, { method, path, headers }: Request, after: () => void) => {
    const at = performance.now()
    let status = 0
    const over = (failure?: string) => {
      if (state === 'over') return
      done++
      answered++
      if (failure !== undefined || status !== 200) {
        const name = failure ?? String(status)
        refused[name] = (refused[name] ?? 0) + 1
      }
      times.record(Math.max(1, Math.round((performance.now() - at) * 1e6)))
      if (count !== undefined && done >= count) end()
      else after()
    }
    client.dispatch(
      {
        method,
        path,
        headers: headers as Record<string, string>,
        body: null
      },
      {
        onRequestStart: () => {},
        onResponseStart: (_controller, code) => {
          status = code
        },
        onResponseData: () => {},
        onResponseEnd: () => over(),
        onResponseError: (_controller, error) =>
          over((error as { code?: string }).code ?? error.message)
      } satisfies Dispatcher.DispatchHandler
    )
  }

  const closedLoop = () =>
    requests.forEach((request, index) => {
      const client = clients[index] as Client
      const next = () => {
        if (count !== undefined && begun >= count) return
        begun++
        send(client, request, next)
      }
      next()
    })

  if (warmMs > 0) setTimeout(measure, warmMs)
  else measure()
  closedLoop()
  const clock = setTimeout(end, warmMs + ms)
  await finished
  clearTimeout(clock)
  await Promise.all(clients.map(client => client.destroy()))
  if (result === undefined) throw new Error('nothing was measured')
  return {
    requests: result.done,
    answered,
    seconds: result.seconds,
    cpuMicros: result.cpu,
    p50Ms: times.percentile(50) / 1e6,
    p99Ms: times.percentile(99) / 1e6,
    refused
  }
}

process.on('message', (wanted: Run) => {
  run(wanted).then(
    ran => process.send?.(ran),
    (error: Error) => {
      throw error
    }
  )
})
process.once('disconnect', () => process.exit())
