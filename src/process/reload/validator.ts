/** Reads and tries a config folder as a reload does, in a thread of its own: requests go on meanwhile. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Fault } from '../../config/schema/faults.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import type { Config } from '../../config/schema/config.ts'
import type { Environment } from '../../config/load/references.ts'
import { adopt } from '../../observability/emitters.ts'

export interface Validated {
  /** Every file that was read, or should have been. */
  readonly files: readonly string[]
  readonly result: { readonly config: Config } | { readonly faults: readonly Fault[] }
}

/** What the thread is told. */
export interface ValidationTask {
  readonly folder: string
  readonly environment: Environment
  /** The install config of the running process; without it that of the files counts. */
  readonly running?: GatewayConfig
}

const maxMs = 60_000
/** A thread costs memory, but the next reload is often soon. */
const idleMs = 30_000

/** What a thread has read stays in its heap, so that one that went on would grow with each reload. */
const maxValidations = 10

/** One thread for the process, and one validation at a time. */
let worker: Worker | undefined
let idle: NodeJS.Timeout | undefined
let validations = 0
let last: Promise<unknown> = Promise.resolve()

/** @throws when the thread breaks or takes longer than any config should */
export async function validate(task: ValidationTask): Promise<Validated> {
  const turn = last.then(() => examineNow(task))
  last = turn.catch(() => {})
  return await turn
}

async function examineNow(task: ValidationTask): Promise<Validated> {
  clearTimeout(idle)
  worker ??= startThread()
  const thread = worker
  thread.ref()
  try {
    return await new Promise<Validated>((resolve, reject) => {
      const limit = setTimeout(
        () => settle(() => reject(new Error('the config could not be examined within a minute'))),
        maxMs
      )
      function settle(how: () => void) {
        clearTimeout(limit)
        thread.off('message', onMessage).off('error', onError).off('exit', onExit)
        how()
      }
      function onMessage(examined: Validated) {
        return settle(() => resolve(examined))
      }
      function onError(error: Error) {
        return settle(() => reject(error))
      }
      function onExit() {
        return settle(() => reject(new Error('the thread that examines config ended')))
      }
      thread.on('message', onMessage).on('error', onError).on('exit', onExit)
      thread.postMessage(task)
    })
  } catch (error) {
    endThread()
    throw error
  } finally {
    thread.unref()
    if (++validations >= maxValidations) endThread()
    else idle = setTimeout(endThread, idleMs).unref()
  }
}

function startThread(): Worker {
  const file = new URL(`validator-thread${extname(import.meta.url)}`, import.meta.url)
  return adopt(new Worker(file, { env: {}, execArgv: [] }))
}

function endThread(): void {
  const old = worker
  worker = undefined
  validations = 0
  void old?.terminate()
}
