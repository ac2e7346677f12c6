/** The process that is to replace this one: started with its listeners, watched until it serves. */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import type { Entry } from '../../movable-state.ts'
import { adopt } from '../../observability/emitters.ts'
import { steadyClock } from '../../steady-clock.ts'
import type { CallStore, Handover, Secrets } from '../../services/handover.ts'
import type { ListenerFd } from '../server/listeners.ts'
import {
  type CallResult,
  type FromPredecessor,
  type FromSuccessor,
  listenersVariable
} from './messages.ts'

/** The command line of this process, as it was typed. */
export interface Program {
  readonly executable: string
  readonly words: readonly string[]
  readonly folder: string
  /** Why its supervisor would take a restart for the end of the gateway, and the way out. */
  readonly refusal: string | undefined
}

interface Inheritance {
  readonly listeners: readonly ListenerFd[]
  readonly secrets: Secrets
}

/** In one message. */
const maxEntries = 200

/** JSON would make `null` of a parameter that is left out. */
function withoutLast(parameters: readonly unknown[]): readonly unknown[] {
  return parameters.slice(0, parameters.findLastIndex(each => each !== undefined) + 1)
}

/** Standard input, output and error come before inherited descriptors. */
const firstFd = 3

export class Successor {
  readonly #child: ChildProcess
  readonly #prepared = Promise.withResolvers<void>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>()
  #lastCall = 0
  #isGone = false
  #keepsSecretFile = true

  constructor({ executable, words, folder }: Program, { listeners, secrets }: Inheritance) {
    const inherited = listeners.map((listener, index) => ({ ...listener, fd: firstFd + index }))
    const stdio: StdioOptions = ['inherit', 'inherit', 'inherit']
    this.#child = adopt(
      spawn(executable, words, {
        cwd: folder,
        env: { ...process.env, [listenersVariable]: JSON.stringify(inherited) },
        stdio: [...stdio, ...listeners.map(({ fd }) => fd), 'ipc'],
        // Another version of Node may not read what this one clones.
        serialization: 'json'
      }),
      error => this.#fail(error.message)
    )
    for (const { promise } of [this.#prepared, this.#ready]) promise.catch(() => {})
    this.#child.on('message', message => this.#onMessage(message as FromSuccessor))
    this.#child.once('disconnect', () => this.#failCalls())
    this.#child.once('exit', (code, signal) => {
      this.#fail(`the new process ended (${signal ?? `exit code ${code}`}) before it was ready`)
    })
    void this.#tell({ kind: 'secrets', secrets, clock: steadyClock.state })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Whether it needs the file with the generated `ops.secret`; known once it is ready. */
  get keepsSecretFile(): boolean {
    return this.#keepsSecretFile
  }

  /** @throws when it does not get so far in time */
  async prepared(withinMs: number): Promise<void> {
    await this.#within(withinMs, this.#prepared.promise)
  }

  /** Gives it all state, and lets it take requests. @throws when it does not in time */
  async begin(state: ReturnType<Handover['take']>, withinMs: number): Promise<void> {
    this.#sendState(state).catch((error: Error) => this.#fail(error.message))
    await this.#within(withinMs, this.#ready.promise)
  }

  /** Calls one of its stores. @throws when that fails, or the process is gone */
  readonly call: CallStore = async (store, method, parameters) => {
    const id = ++this.#lastCall
    const call = Promise.withResolvers<unknown>()
    this.#calls.set(id, call)
    if (this.#isGone) this.#failCalls()
    else void this.#tell({ kind: 'call', id, store, method, parameters: withoutLast(parameters) })
    return await call.promise
  }

  /** Finishes its requests, then ends. */
  stop(): void {
    this.#child.kill('SIGTERM')
  }

  /** It takes no requests any more. */
  async kill(): Promise<void> {
    const { exitCode, signalCode, pid } = this.#child
    if (pid === undefined || exitCode !== null || signalCode !== null) return
    const exited = new Promise<void>(resolve => {
      this.#child.once('exit', () => resolve())
    })
    this.#child.kill('SIGKILL')
    await exited
  }

  #onMessage(message: FromSuccessor): void {
    if (message.kind === 'prepared') this.#prepared.resolve()
    if (message.kind === 'ready') this.#onReady(message)
    if (message.kind === 'failed') this.#fail(message.reason)
    if (message.kind === 'result') this.#onResult(message)
  }

  #onReady({ keepsSecretFile = true }: Extract<FromSuccessor, { readonly kind: 'ready' }>): void {
    this.#keepsSecretFile = keepsSecretFile
    this.#ready.resolve()
  }

  #onResult({ id, value, error }: CallResult): void {
    const call = this.#calls.get(id)
    this.#calls.delete(id)
    if (error === undefined) call?.resolve(value)
    else call?.reject(new Error(error))
  }

  async #sendState(state: ReturnType<Handover['take']>): Promise<void> {
    let entries: Array<readonly [string, Entry]> = []
    for (const entry of state) {
      if (entries.push(entry) < maxEntries) continue
      await this.#tell({ kind: 'state', entries })
      entries = []
    }
    await this.#tell({ kind: 'state', entries })
    await this.#tell({ kind: 'begin' })
  }

  /** Resolves when it was sent, or cannot be: what waits must not fill the memory. */
  async #tell(message: FromPredecessor): Promise<void> {
    // Without a process there is no channel either.
    if (!this.#child.connected) return
    await new Promise<void>(resolve => {
      this.#child.send(message, () => resolve())
    })
  }

  #failCalls(): void {
    this.#isGone = true
    const error = new Error('the process that has the state is gone')
    for (const call of this.#calls.values()) call.reject(error)
    this.#calls.clear()
  }

  #fail(reason: string): void {
    const error = new Error(reason)
    this.#prepared.reject(error)
    this.#ready.reject(error)
  }

  async #within(ms: number, step: Promise<void>): Promise<void> {
    const timer = setTimeout(() => this.#fail(`it was not ready within ${ms / 1000} s`), ms)
    await step.finally(() => clearTimeout(timer))
  }
}
