/** What the first process and its workers say to each other. */
import type { Worker } from 'node:cluster'
import type { IncomingHttpHeaders } from 'node:http'
import type { Config } from '../../config/schema/config.ts'
import type { ChangedUser, Sources } from '../../login/file-users.ts'
import type { Endings, ReviewedUser } from '../../login/changed-users.ts'
import type { Readiness } from '../../admin/server.ts'

export interface WorkerState {
  readonly index: number
  readonly pid: number
  readonly readiness: Readiness
  /** By the number of the generation. */
  readonly requests: ReadonlyArray<readonly [generation: number, requests: number]>
}

/** What a worker does when it is asked to. */
export interface WorkerCalls {
  /** Gets all ready, but to listen. */
  readonly start: (given: {
    readonly index: number
    readonly number: number
    readonly config: Config
  }) => Promise<true>
  /** @returns where it listens */
  readonly listen: (given: object) => Promise<string>
  readonly build: (given: { readonly number: number; readonly config: Config }) => Promise<true>
  readonly activate: (given: { readonly number: number }) => Promise<true>
  /** What was built will not be used. */
  readonly drop: (given: { readonly number: number }) => Promise<true>
  /** @returns how many requests had to be ended */
  readonly retire: (given: { readonly number: number; readonly graceMs: number }) => Promise<number>
  readonly state: (given: object) => Promise<WorkerState>
  readonly metrics: (given: object) => Promise<{ readonly index: number; readonly body: string }>
  /** One of several does it for all: they share the store. */
  readonly countEndings: (given: {
    readonly before: Sources
    readonly after: Sources
  }) => Promise<Endings>
  readonly reviewChanged: (given: {
    readonly changed: readonly ChangedUser[]
  }) => Promise<ReviewedUser[]>
  readonly reviewSignedIn: (given: { readonly sources: Sources }) => Promise<ReviewedUser[]>
  readonly admin: (given: {
    readonly method: string
    readonly url: string
    readonly headers: IncomingHttpHeaders
    readonly body?: unknown
  }) => Promise<{ readonly status: number; readonly type: string; readonly text: string }>
  /** Takes no more requests, ends the rest after the time, and then itself. @returns whether all finished */
  readonly stop: (given: { readonly graceMs: number }) => Promise<boolean>
}

export type CallWorker = <K extends keyof WorkerCalls>(
  what: K,
  given: Parameters<WorkerCalls[K]>[0]
) => ReturnType<WorkerCalls[K]>

interface Call {
  readonly id: number
  readonly what: keyof WorkerCalls
  readonly given: object
}

/** The worker tells that it drains and ends, because of an uncaught error. */
const failing = 'failing'

type Reply = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: Error; readonly fields: object }
)

/** The worker ended before it had answered. */
export class WorkerGone extends Error {}

/** Asks a worker, which answers with `answerFirst`. What it throws is thrown here. */
export function askWorker(worker: Worker, onFailing: () => void): CallWorker {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  let gone = false
  worker.on('message', (answer: Reply | typeof failing) => {
    if (answer === failing) return onFailing()
    const asked = waiting.get(answer.id)
    waiting.delete(answer.id)
    if ('error' in answer) asked?.reject(Object.assign(answer.error, answer.fields))
    else asked?.resolve(answer.value)
  })
  const end = () => {
    gone = true
    for (const asked of waiting.values()) asked.reject(new WorkerGone('the worker ended'))
    waiting.clear()
  }
  worker.once('exit', end)
  return (async (what: keyof WorkerCalls, given: object) => {
    if (gone) throw new WorkerGone('the worker ended')
    const id = ++last
    const asked = Promise.withResolvers<unknown>()
    // Throws at once for what cannot be sent.
    worker.send({ id, what, given } satisfies Call, error => {
      if (error !== null && waiting.delete(id)) asked.reject(new WorkerGone(error.message))
    })
    waiting.set(id, asked)
    return await asked.promise
  }) as CallWorker
}

/** In a worker: from now on the first process asks it nothing more. */
export function tellFailing(): void {
  if (process.connected) process.send?.(failing, undefined, undefined, () => {})
}

/** In a worker: answers what the first process asks. */
export function servePrimary(calls: WorkerCalls): void {
  process.on('message', ({ id, what, given }: Call) => {
    const answer = (told: Reply) => {
      // Without a callback, an answer that cannot be sent is an `error` of the process.
      if (process.connected) process.send?.(told, undefined, undefined, () => {})
    }
    // Fields of an error are lost on the way, but for its message.
    ;(calls[what] as (given: object) => Promise<unknown>)(given).then(
      value => answer({ id, value }),
      (error: NodeJS.ErrnoException & { address?: string; port?: number }) =>
        answer({
          id,
          error,
          fields: { code: error.code, address: error.address, port: error.port }
        })
    )
  })
}
