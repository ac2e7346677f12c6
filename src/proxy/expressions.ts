/** JSONata expressions, run in a thread of their own: a regular expression that never ends, or a list that grows without end, costs one answer and not the gateway. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Json } from '../json/values.ts'
import { adopt } from '../observability/emitters.ts'

export interface Bounds {
  /** For one expression; those that wait for their turn are not counted. */
  readonly timeoutMs: number
  /** Of the JSON that goes in, and of that which comes out. */
  readonly maxBytes: number
}

/** What the thread is told, and what it tells. */
export interface Task { readonly expression: string, readonly input: string, readonly timeoutMs: number, readonly maxLength: number }
export type Outcome = { readonly output: string } | Failure
interface Failure { readonly error: string, readonly code?: 'shape.number-too-long' }

interface Job extends Task {
  readonly done: (outcome: Outcome) => void
}

/** So many may wait; more are refused at once. */
const maxWaiting = 200
const memoryMb = 64
/** A new thread starts before its first task's time begins. */
const startMs = 10_000

export interface Expressions {
  /**
   * @throws GatewayError `shape.expression` where it fails or exceeds a bound, `overloaded` where
   * too many wait, `shape.number-too-long` where it computes with a number that no double holds
   */
  readonly evaluate: (expression: string, input: Json, bounds: Bounds) => Promise<Json>
  readonly close: () => Promise<void>
}

export function createExpressions (): Expressions {
  const waiting: Job[] = []
  let worker: Worker | undefined
  let running: Job | undefined
  let timer: NodeJS.Timeout | undefined

  const settle = (outcome: Outcome) => {
    clearTimeout(timer)
    const job = running
    running = undefined
    job?.done(outcome)
    next()
  }
  const abandon = (reason: string) => {
    const old = worker
    worker = undefined
    void old?.terminate()
    settle({ error: reason })
  }
  const start = () => {
    const thread = adopt(new Worker(new URL(`expression-thread${extname(import.meta.url)}`, import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: memoryMb },
      env: {},
      execArgv: []
    }))
    const isCurrent = () => worker === thread
    thread.on('message', (message: Outcome | 'begun') => {
      if (!isCurrent()) return
      if (message === 'begun') limitTime(running?.timeoutMs ?? 0)
      else settle(message)
    })
    thread.on('error', error => { if (isCurrent()) abandon(`the expression broke its thread: ${error.message}`) })
    thread.on('exit', () => { if (isCurrent()) abandon('the expression’s thread ended') })
    thread.unref()
    return thread
  }
  const limitTime = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => abandon('the expression took too long'), ms)
  }
  const next = () => {
    if (running !== undefined) return
    running = waiting.shift()
    if (running === undefined) return worker?.unref()
    const { done: _, ...task } = running
    worker ??= start()
    worker.ref()
    limitTime(startMs)
    worker.postMessage(task satisfies Task)
  }

  return {
    evaluate: async (expression, value, { timeoutMs, maxBytes }) => {
      const input = textOf(value)
      if (input.length > maxBytes) throw failed(`its input is larger than ${maxBytes} bytes`)
      if (waiting.length >= maxWaiting) throw new GatewayError('overloaded', { retryAfter: 1, cause: new Error('too many expressions wait for their turn') })
      const outcome = await new Promise<Outcome>(done => {
        waiting.push({ expression, input, timeoutMs, maxLength: maxBytes, done })
        next()
      })
      if ('error' in outcome) throw failed(outcome.error, outcome.code)
      return parseKeepingDigits(outcome.output)
    },
    close: async () => {
      for (const job of waiting.splice(0)) job.done({ error: 'the gateway stops' })
      const old = worker
      worker = undefined
      if (running !== undefined) settle({ error: 'the gateway stops' })
      await old?.terminate()
    }
  }
}

const failed = (reason: string, code: ErrorCode = 'shape.expression') =>
  new GatewayError(code, { cause: new Error(reason) })

/** @throws where it is nested more deeply than the stack reaches */
function textOf (value: Json): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) throw failed('its input is nested too deeply')
    throw error
  }
}
