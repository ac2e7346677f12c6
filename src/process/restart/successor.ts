/** The process that is to replace this one: started with its listeners, watched until it serves. */
import { type ChildProcess, spawn, type StdioOptions } from 'node:child_process'
import { adopt } from '../../observability/emitters.ts'
import {
  type FromPredecessor,
  type FromSuccessor,
  type InheritedListener,
  listenersVariable
} from './messages.ts'
import type { Program } from './program.ts'

/** Standard input, output and error come before inherited descriptors. */
const firstFd = 3

export class Successor {
  readonly #child: ChildProcess
  readonly #prepared = Promise.withResolvers<void>()
  readonly #ready = Promise.withResolvers<void>()

  constructor({ executable, words, folder }: Program, listeners: ReadonlyArray<InheritedListener>) {
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
    this.#child.once('exit', (code, signal) => {
      this.#fail(`the new process ended (${signal ?? `exit code ${code}`}) before it was ready`)
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** @throws when it does not get so far in time */
  async prepared(withinMs: number): Promise<void> {
    await this.#within(withinMs, this.#prepared.promise)
  }

  /** Lets it take requests. @throws when it does not in time */
  async begin(withinMs: number): Promise<void> {
    this.#tell({ kind: 'begin' })
    await this.#within(withinMs, this.#ready.promise)
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
    if (message.kind === 'ready') this.#ready.resolve()
    if (message.kind === 'failed') this.#fail(message.reason)
  }

  #tell(message: FromPredecessor): void {
    // Without a callback, a message that cannot be sent is an `error` of the child.
    this.#child.send(message, () => {})
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
