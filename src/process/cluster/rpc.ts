/** Remote calls between the primary and its workers. */
import type { Worker } from 'node:cluster'
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import type { Config } from '../../config/schema/config.ts'
import type { ChangedUser, Sources } from '../../login/file-users.ts'
import type { Endings, ReviewedUser } from '../../login/changed-users.ts'
import type { Forwarded } from '../../admin/forwarded.ts'
import type { FoundOperator } from '../../admin/operator.ts'
import type { Readiness } from '../../admin/server.ts'
import type { ListenerFds } from '../server/listeners.ts'
import type { PublicServer } from '../server/public-server.ts'
import type { Observation } from '../server/observers.ts'
import type { MetricsFormat } from '../../observability/metrics-text.ts'

export interface WorkerState {
  readonly index: number
  readonly pid: number
  /** Whether it closes its services: it answers what it knows, but cannot ask Redis. */
  readonly isClosing: boolean
  readonly readiness: Readiness
  /** By the number of the generation. */
  readonly requests: ReadonlyArray<readonly [generation: number, requests: number]>
}

/** The primary's reply to entries of a worker's audit ledger. */
export interface Audited {
  readonly id: number
  readonly seq?: number | undefined
  /** Why a commit failed. */
  readonly reason?: string | undefined
}

/** The calls that a worker serves. */
export interface WorkerCalls {
  /** Prepares everything, but does not listen yet. */
  readonly start: (parameters: {
    readonly index: number
    /** Of workers. */
    readonly count: number
    readonly number: number
    readonly config: Config
  }) => Promise<true>
  /**
   * @param parameters descriptors of the primary, which has inherited them
   * @returns the listener's address
   */
  readonly listen: (parameters: { readonly fds: ListenerFds }) => Promise<string>
  readonly build: (parameters: {
    readonly number: number
    readonly config: Config
  }) => Promise<true>
  readonly activate: (parameters: { readonly number: number }) => Promise<true>
  /** Closes a generation that was built but will not be activated. */
  readonly drop: (parameters: { readonly number: number }) => Promise<true>
  /** @returns how many requests had to be ended */
  readonly retire: (parameters: {
    readonly number: number
    readonly graceMs: number
  }) => Promise<number>
  readonly maintain: (parameters: {
    readonly maintenance: readonly MaintenanceConfig[]
  }) => Promise<true>
  readonly state: (parameters: object) => Promise<WorkerState>
  readonly observe: (parameters: {
    readonly kind: string
    readonly query: unknown
  }) => Promise<Observation[]>
  readonly metrics: (parameters: {
    readonly format?: MetricsFormat
  }) => Promise<{ readonly index: number; readonly body: string }>
  /** One worker does it for all, since they share the store. */
  readonly countAlive: (parameters: object) => ReturnType<PublicServer['countAlive']>
  readonly countEndings: (parameters: {
    readonly before: Sources
    readonly after: Sources
  }) => Promise<Endings>
  readonly reviewChanged: (parameters: {
    readonly changed: readonly ChangedUser[]
  }) => Promise<ReviewedUser[]>
  readonly reviewSignedIn: (parameters: { readonly sources: Sources }) => Promise<ReviewedUser[]>
  readonly findOperator: (parameters: { readonly secretId: string }) => Promise<FoundOperator>
  readonly admin: (parameters: {
    readonly method: string
    readonly url: string
    readonly headers: IncomingHttpHeaders
    readonly body?: unknown
    readonly forwarded: Forwarded
  }) => Promise<{
    readonly status: number
    readonly type: string
    readonly text: string
    /** Those that the response has beside the common ones. */
    readonly headers: OutgoingHttpHeaders
  }>
  /** Replies to entries that the worker sent for the audit ledger. */
  readonly audited: (parameters: Audited) => Promise<true>
  /**
   * Takes no more connections, ends idle ones after `lingerMs` and requests in flight after
   * `graceMs` more, then the process. @returns whether all finished
   */
  readonly stop: (parameters: {
    readonly graceMs: number
    readonly lingerMs: number
  }) => Promise<boolean>
}

/** @throws WorkerGone, WorkerSilent when it does not reply in time, and what the worker throws */
export type CallWorker = <K extends keyof WorkerCalls>(
  method: K,
  parameters: Parameters<WorkerCalls[K]>[0],
  /** By default without a bound. */
  withinMs?: number
) => ReturnType<WorkerCalls[K]>

interface Call {
  readonly id: number
  readonly method: keyof WorkerCalls
  readonly parameters: object
}

type Reply = { readonly id: number } & (
  | { readonly value: unknown }
  | { readonly error: Error; readonly fields: object }
)

/** Sent by a worker that drains and ends, because of an uncaught error. */
const failing = 'failing'

/** The worker ended before it had replied. */
export class WorkerGone extends Error {}

/** The worker did not reply in time. It may still do so. */
export class WorkerSilent extends Error {}

/** The longest time of a timer of Node, which ends a longer one at once. */
const maxTimerMs = 2 ** 31 - 1

/** @throws WorkerSilent after the time, and what the reply throws */
export async function within<T>(ms: number, reply: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const message = `the worker did not answer within ${ms} ms`
  const onLate = () => late.reject(new WorkerSilent(message))
  const timer = setTimeout(onLate, Math.min(ms, maxTimerMs))
  try {
    return await Promise.race([reply, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** @returns calls the worker, which serves it by `servePrimary`; throws what the worker throws */
export function connectWorker(worker: Worker, onFailing: () => void): CallWorker {
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  let lastId = 0
  let isGone = false
  worker.on('message', (reply: Reply | typeof failing) => {
    if (reply === failing) return onFailing()
    const call = pending.get(reply.id)
    pending.delete(reply.id)
    if ('error' in reply) call?.reject(Object.assign(reply.error, reply.fields))
    else call?.resolve(reply.value)
  })
  worker.once('exit', () => {
    isGone = true
    for (const call of pending.values()) call.reject(new WorkerGone('the worker ended'))
    pending.clear()
  })
  return (async (method: keyof WorkerCalls, parameters: object, withinMs?: number) => {
    if (isGone) throw new WorkerGone('the worker ended')
    const id = ++lastId
    const call = Promise.withResolvers<unknown>()
    // Throws at once when the parameters cannot be sent.
    worker.send({ id, method, parameters } satisfies Call, error => {
      if (error !== null && pending.delete(id)) call.reject(new WorkerGone(error.message))
    })
    pending.set(id, call)
    return await (withinMs === undefined ? call.promise : within(withinMs, call.promise))
  }) as CallWorker
}

/** In a worker: from now on the primary does not call it. */
export function reportFailing(): void {
  sendToPrimary(failing)
}

/** In a worker: serves the calls of the primary. */
export function servePrimary(calls: WorkerCalls): void {
  process.on('message', (message: Call | { readonly method?: undefined }) => {
    // Answers about limits have a way of their own.
    if (message.method === undefined) return
    const { id, method, parameters } = message
    ;(calls[method] as (parameters: object) => Promise<unknown>)(parameters).then(
      value => sendToPrimary({ id, value }),
      (error: NodeJS.ErrnoException & { address?: string; port?: number }) => {
        // Only the message of an error is sent by itself.
        const { code, address, port } = error
        sendToPrimary({ id, error, fields: { code, address, port } })
      }
    )
  })
}

function sendToPrimary(message: Reply | typeof failing): void {
  // Without a callback, a message that cannot be sent is an `error` of the process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}
