/** Replaces the running config: files → validated → built → swapped, all or nothing. */
import { configDifferences } from '../../config/load/differences.ts'
import { describeFault, type Fault } from '../../config/schema/faults.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import type { Config } from '../../config/schema/config.ts'
import type { Validated } from './validator.ts'
import type { Generation } from '../server/generation.ts'
import type { Generations } from '../server/generations.ts'
import type { FilesState, Taken } from '../../observability/gateway-state.ts'
import type { Attempt, Confirmed, Outcome, Refused, Trigger } from './outcome.ts'
import { massChange } from '../../login/changed-users.ts'
import { keepInstall } from './keep-install.ts'
import { inWords, logNewWarnings, messageOf } from './log-lines.ts'

export interface Reloader {
  readonly current: () => Generation
  /** Reads the files and runs their config. Faults of the files are an outcome, not an error. */
  readonly reload: (by: Trigger, confirmed?: Confirmed) => Promise<Outcome>
  readonly files: () => FilesState
  /** The faults of refused files, with their places; empty where they were refused otherwise. */
  readonly faults: () => readonly Fault[]
  readonly restartNeeded: () => readonly string[]
  /** When and why the running config came. */
  readonly taken: () => Taken
  /** The earlier generations that finish their requests. */
  readonly draining: () => ReadonlyArray<{ readonly generation: number; readonly requests: number }>
  /** Ends what is draining. */
  readonly close: () => Promise<void>
}

interface Options {
  readonly generations: Pick<Generations, 'current' | 'draining' | 'close'>
  readonly validate: (running: GatewayConfig) => Promise<Validated>
  readonly create: (number: number, config: Config) => Promise<Generation>
  /** From then on this generation takes the requests. */
  readonly activate: (generation: Generation) => void
  /** Compares live sessions with the users in force. @returns the results, in words */
  readonly reviewUsers: (before: Config, after: Config) => Promise<readonly string[]>
  /** Called with the config's files after each reading. */
  readonly onFiles: (files: readonly string[]) => void
  /** Called with each config that runs from now on, also with that of the start. */
  readonly onTaken: (config: Config) => void
  readonly refused?: Refused | undefined
  readonly onOutcome: (outcome: Outcome, attempt: Attempt) => void
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

export const createReloader = (options: Options): Reloader => new ConfigReloader(options)

class ConfigReloader implements Reloader {
  readonly #options: Options
  #taken: Taken = { at: new Date().toISOString(), by: 'start', changes: [] }
  #files: FilesState = { state: 'running' }
  #faults: readonly Fault[] = []
  #restartNeeded: readonly string[]
  /** Reloads run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** A reload that has not begun yet; further calls share its outcome. */
  #waiting: Promise<Outcome> | undefined
  #isConfirmed = false
  /** Of a generation that could not be built it is not used again. */
  #lastNumber: number

  constructor(options: Options) {
    this.#options = options
    const { number, config } = this.current()
    this.#lastNumber = number
    this.#restartNeeded = config.restartNeeded
    if (options.refused === undefined) options.onTaken(config)
    else this.#startRefused(options.refused)
  }

  readonly current = (): Generation => this.#options.generations.current
  readonly files = (): FilesState => this.#files
  readonly faults = (): readonly Fault[] => ('faults' in this.#files ? this.#faults : [])
  readonly restartNeeded = (): readonly string[] => this.#restartNeeded
  readonly taken = (): Taken => this.#taken
  readonly draining: Reloader['draining'] = () => this.#options.generations.draining()

  readonly reload: Reloader['reload'] = async (by, { yes = false, operator } = {}) => {
    this.#isConfirmed ||= yes
    if (this.#waiting === undefined) {
      this.#waiting = this.#last.then(() =>
        this.#record({ kind: 'config.reload', by, operator }, this.#takeFiles(by))
      )
      this.#last = this.#waiting.catch(() => {})
    }
    return await this.#waiting
  }

  readonly close = async (): Promise<void> => {
    await this.#last
    await this.#options.generations.close()
  }

  async #record(attempt: Attempt, taken: Promise<Outcome>): Promise<Outcome> {
    const outcome = await taken
    this.#options.onOutcome(outcome, attempt)
    return outcome
  }

  async #takeFiles(by: Trigger): Promise<Outcome> {
    this.#waiting = undefined
    const isConfirmed = this.#isConfirmed
    this.#isConfirmed = false
    const result = await this.#validateFiles()
    if ('faults' in result) return this.#refuse(by, result.faults)
    const { config } = result
    const before = this.current().config
    const changes = configDifferences(before, config).map(({ file, text }) =>
      file === 'users' ? `users ${text}` : text
    )
    logNewWarnings(this.#options.log, before, config)
    this.#takeRestartNeeded(config.restartNeeded)
    if (changes.length === 0) return this.#keep(by)
    const { reviewUsers, create, activate, log } = this.#options
    const mistake = isConfirmed ? undefined : massChange(before, config)
    if (mistake !== undefined) {
      return this.#refuse(by, [
        `${mistake}: if that is meant, run \`console-gateway reload --yes\``
      ])
    }
    try {
      activate(await create(++this.#lastNumber, config))
    } catch (error) {
      return this.#refuse(by, [`it could not be built: ${messageOf(error)}`])
    }
    const { number: generation } = this.current()
    this.#files = { state: 'running' }
    this.#taken = { at: new Date().toISOString(), by, changes }
    this.#options.onTaken(config)
    log.info(
      { event: 'config.reloaded', generation, by, changes },
      `config reloaded: ${inWords(changes)}`
    )
    const sessions = await reviewUsers(before, config)
    return {
      outcome: 'reloaded',
      generation,
      changes,
      sessions,
      restartNeeded: this.#restartNeeded
    }
  }

  /** @returns the config of the files, or why it cannot run */
  async #validateFiles(): Promise<
    { readonly config: Config } | { readonly faults: readonly string[] }
  > {
    const { validate, onFiles } = this.#options
    this.#faults = []
    let validated: Validated
    try {
      validated = await validate(this.current().config.gateway)
    } catch (error) {
      return { faults: [messageOf(error)] }
    }
    onFiles(validated.files)
    const { result } = validated
    if ('config' in result) return { config: keepInstall(this.current().config, result.config) }
    this.#faults = result.faults.filter(({ severity }) => severity === 'fault')
    return { faults: this.#faults.map(describeFault) }
  }

  #startRefused({ faults, lastGoodOf }: Refused): void {
    this.#taken = { at: lastGoodOf, by: 'start --last-good', changes: [] }
    this.#options.log.warn(
      { event: 'config.last-good', at: lastGoodOf },
      `started with the config that was accepted at ${lastGoodOf}, since the files are refused`
    )
    this.#faults = faults.filter(({ severity }) => severity === 'fault')
    this.#refuse('start', this.#faults.map(describeFault))
  }

  /** The files hold the running config. */
  #keep(by: Trigger): Outcome {
    const wasRunning = this.#files.state === 'running'
    if (!wasRunning || by === 'SIGHUP') {
      const message = wasRunning
        ? 'the config files are unchanged: nothing to reload'
        : 'the config files hold the running config again'
      const { number: generation } = this.current()
      this.#options.log.info({ event: 'config.unchanged', generation, by }, message)
    }
    this.#files = { state: 'running' }
    return this.#unchanged()
  }

  #unchanged(): Outcome {
    return {
      outcome: 'unchanged',
      generation: this.current().number,
      restartNeeded: this.#restartNeeded,
      ...(this.#taken.by !== 'start' && { taken: this.#taken })
    }
  }

  #refuse(by: Trigger | 'start', faults: readonly string[]): Outcome {
    const { number: generation } = this.current()
    // An editor often saves a file in several steps: the same faults are logged once.
    const isLogged =
      by === 'files changed' &&
      this.#files.state === 'refused' &&
      this.#files.faults.join('\n') === faults.join('\n')
    if (isLogged) return { outcome: 'refused', generation, faults }
    this.#files = { state: 'refused', since: new Date().toISOString(), faults }
    this.#options.log.error(
      { event: 'config.refused', generation, by, faults },
      `config refused, the running one stays: ${inWords(faults)}`
    )
    return { outcome: 'refused', generation, faults }
  }

  #takeRestartNeeded(keys: readonly string[]): void {
    if (keys.length > 0 && keys.join() !== this.#restartNeeded.join()) {
      const message = `restart needed: ${keys.join(', ')}`
      this.#options.log.warn({ event: 'config.restart-needed', keys }, message)
    }
    this.#restartNeeded = keys
  }
}
