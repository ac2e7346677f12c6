/** Reads and tries a config folder in a thread, as a reload does: requests go on meanwhile. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Fault } from '../../config/schema/faults.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import type { Config } from '../../config/schema/config.ts'
import type { Environment } from '../../config/load/references.ts'
import { adopt } from '../../observability/emitters.ts'

export interface Validated {
  /** Every file that was read, or is missing. */
  readonly files: readonly string[]
  readonly result: { readonly config: Config } | { readonly faults: readonly Fault[] }
}

/** Validates the config files; with the running config it finds the keys that need a restart. */
export type Validate = (running?: GatewayConfig) => Promise<Validated>

/** The message to the thread. */
export interface ValidationTask {
  readonly folder: string
  readonly environment: Environment
  /** The install config of the running process; by default that of the files. */
  readonly running?: GatewayConfig
}

const maxMs = 60_000
/** The thread ends after this time: it takes 25 MB, but another reload often follows soon. */
const idleMs = 3000

/** A thread's heap grows with each validation, so it is replaced after these. */
const maxValidations = 10

/** One thread for the process, and one validation at a time. */
let worker: Worker | undefined
let idle: NodeJS.Timeout | undefined
let validations = 0
let last: Promise<unknown> = Promise.resolve()

/** @throws when the thread fails or takes longer than a minute */
export async function validate(task: ValidationTask): Promise<Validated> {
  const validated = last.then(() => validateNow(task))
  last = validated.catch(() => {})
  return await validated
}

async function validateNow(task: ValidationTask): Promise<Validated> {
  clearTimeout(idle)
  worker ??= startThread()
  const thread = worker
  thread.ref()
  try {
    return await new Promise<Validated>((resolve, reject) => {
      const limit = setTimeout(
        () => settle(() => reject(new Error('the config could not be validated within a minute'))),
        maxMs
      )
      function settle(how: () => void) {
        clearTimeout(limit)
        thread.off('message', onMessage).off('error', onError).off('exit', onExit)
        how()
      }
      function onMessage(validated: Validated) {
        return settle(() => resolve(validated))
      }
      function onError(error: Error) {
        return settle(() => reject(error))
      }
      function onExit() {
        return settle(() => reject(new Error('the thread that validates config ended')))
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
