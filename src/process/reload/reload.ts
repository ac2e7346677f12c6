/** Replaces the running config: files → validated → built → swapped, all or nothing. */
import { configDifferences } from '../../config/load/differences.ts'
import { describeFault, type Fault } from '../../config/schema/faults.ts'
import type { Config } from '../../config/schema/config.ts'
import { massChange } from '../../login/changed-users.ts'
import type { FilesState, Taken } from '../../observability/gateway-state.ts'
import type { Log } from '../../services/services.ts'
import type { Generation } from '../server/generation.ts'
import type { Generations } from '../server/generations.ts'
import type { Asking, Outcome, Refused, Trigger } from './outcome.ts'
import type { Validate, Validated } from './validator.ts'

interface Options {
  readonly generations: Pick<Generations, 'current' | 'close'>
  readonly validate: Validate
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
  readonly onOutcome: (outcome: Outcome, by: Trigger, operator: Asking['operator']) => void
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** What is known of the config that runs, and of its files. */
interface ReloadState {
  readonly files: FilesState
  /** The faults of refused files, with their places; empty where they were refused otherwise. */
  readonly faults: readonly Fault[]
  readonly restartNeeded: readonly string[]
  /** When and why the running config came. */
  readonly taken: Taken
}

const maxInLine = 12

export class Reloader {
  readonly #options: Options
  #state: ReloadState
  /** Reloads run one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** Of a generation that could not be built it is not used again. */
  #lastNumber: number

  constructor(options: Options) {
    const { number, config } = options.generations.current
    this.#options = options
    this.#lastNumber = number
    this.#state = {
      files: { state: 'running' },
      faults: [],
      restartNeeded: config.restartNeeded,
      taken: { at: new Date().toISOString(), by: 'start', changes: [] }
    }
    if (options.refused === undefined) options.onTaken(config)
    else this.#startRefused(options.refused)
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Reads the files and runs their config. Faults of the files are an outcome, not an error. */
  async reload(by: Trigger, { yes = false, operator }: Asking = {}): Promise<Outcome> {
    const reloading = this.#last.then(() => this.#takeFiles(by, yes))
    this.#last = reloading.catch(() => {})
    const outcome = await reloading
    this.#options.onOutcome(outcome, by, operator)
    return outcome
  }

  /** Ends what is draining. */
  async close(): Promise<void> {
    await this.#last
    await this.#options.generations.close()
  }

  async #takeFiles(by: Trigger, isConfirmed: boolean): Promise<Outcome> {
    const { validate, onFiles, log } = this.#options
    const { config: before } = this.#options.generations.current
    let read: Validated
    try {
      read = await validate(before.gateway)
    } catch (error) {
      return this.#refuse(by, [messageOf(error)])
    }
    onFiles(read.files)
    if ('faults' in read) return this.#refuse(by, read.faults.map(describeFault), read.faults)
    const config = keepInstall(before, read.config)
    logNewWarnings(log, before, config)
    this.#noteRestartNeeded(config.restartNeeded)
    const changes = configDifferences(before, config).map(({ file, text }) =>
      file === 'users' ? `users ${text}` : text
    )
    if (changes.length === 0) return this.#keep(by)
    const mistake = isConfirmed ? undefined : massChange(before, config)
    if (mistake === undefined) return await this.#take(by, config, changes)
    return this.#refuse(by, [`${mistake}: if that is meant, run \`console-gateway reload --yes\``])
  }

  async #take(by: Trigger, config: Config, changes: readonly string[]): Promise<Outcome> {
    const { generations, create, activate, onTaken, reviewUsers, log } = this.#options
    const { config: before } = generations.current
    const generation = ++this.#lastNumber
    try {
      activate(await create(generation, config))
    } catch (error) {
      return this.#refuse(by, [`it could not be built: ${messageOf(error)}`])
    }
    const taken = { at: new Date().toISOString(), by, changes }
    this.#state = { ...this.#state, files: { state: 'running' }, faults: [], taken }
    onTaken(config)
    log.info(
      { event: 'config.reloaded', generation, by, changes },
      `config reloaded: ${inWords(changes)}`
    )
    const sessions = await reviewUsers(before, config)
    const { restartNeeded } = config
    return { outcome: 'reloaded', generation, changes, sessions, restartNeeded }
  }

  #startRefused({ faults: all, lastGoodOf }: Refused): void {
    const taken = { at: lastGoodOf, by: 'start --last-good', changes: [] }
    this.#state = { ...this.#state, taken }
    this.#options.log.warn(
      { event: 'config.last-good', at: lastGoodOf },
      `started with the config that was accepted at ${lastGoodOf}, since the files are refused`
    )
    const faults = all.filter(({ severity }) => severity === 'fault')
    this.#refuse('start', faults.map(describeFault), faults)
  }

  /** The files hold the running config. */
  #keep(by: Trigger): Outcome {
    const { files, taken, restartNeeded } = this.#state
    const { number: generation } = this.#options.generations.current
    const wasRunning = files.state === 'running'
    if (!wasRunning || by === 'SIGHUP') {
      const message = wasRunning
        ? 'the config files are unchanged: nothing to reload'
        : 'the config files hold the running config again'
      this.#options.log.info({ event: 'config.unchanged', generation, by }, message)
    }
    this.#state = { ...this.#state, files: { state: 'running' }, faults: [] }
    return {
      outcome: 'unchanged',
      generation,
      restartNeeded,
      ...(taken.by !== 'start' && { taken })
    }
  }

  #refuse(by: Trigger | 'start', texts: readonly string[], faults: readonly Fault[] = []): Outcome {
    const { generations, log } = this.#options
    const { number: generation } = generations.current
    const { files: before } = this.#state
    // An editor often saves a file in several steps: the same faults are logged once.
    const isLogged =
      by === 'files changed' &&
      before.state === 'refused' &&
      before.faults.join('\n') === texts.join('\n')
    const files = isLogged
      ? before
      : ({ state: 'refused', since: new Date().toISOString(), faults: texts } as const)
    this.#state = { ...this.#state, files, faults }
    if (!isLogged) {
      log.error(
        { event: 'config.refused', generation, by, faults: texts },
        `config refused, the running one stays: ${inWords(texts)}`
      )
    }
    return { outcome: 'refused', generation, faults: texts }
  }

  #noteRestartNeeded(keys: readonly string[]): void {
    if (keys.length > 0 && keys.join() !== this.#state.restartNeeded.join()) {
      const message = `restart needed: ${keys.join(', ')}`
      this.#options.log.warn({ event: 'config.restart-needed', keys }, message)
    }
    this.#state = { ...this.#state, restartNeeded: keys }
  }
}

/**
 * What a reload cannot change stays, whatever the files say. A listener has TLS if it began with
 * it: its pair stays where they have none any more. Connections to Redis keep the authority of the start.
 */
function keepInstall(running: Config, next: Config): Config {
  const { serverTls, opsTls, redisCa, ...others } = next
  const { server, ops } = running.gateway
  const serverPair = server.tls && (serverTls ?? running.serverTls)
  const opsPair = ops.tls && (opsTls ?? running.opsTls)
  const hasBoth = redisCa !== undefined && running.redisCa !== undefined
  const renewed = hasBoth && redisCa !== running.redisCa ? ['redis.ca'] : []
  return {
    ...others,
    ...(serverPair && { serverTls: serverPair }),
    ...(opsPair && { opsTls: opsPair }),
    ...(running.redisCa !== undefined && { redisCa: running.redisCa }),
    restartNeeded: [...new Set([...others.restartNeeded, ...renewed])]
  }
}

/** Logs the warnings that the config before did not have. */
function logNewWarnings(log: Pick<Log, 'warn'>, before: Config, { warnings }: Config): void {
  const logged = new Set(before.warnings.map(({ path, message }) => path + message))
  for (const warning of warnings) {
    if (logged.has(warning.path + warning.message)) continue
    log.warn({ config: warning.path }, describeFault(warning))
  }
}

function inWords(lines: readonly string[]): string {
  const more = lines.length - maxInLine
  return [...lines.slice(0, maxInLine), ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
