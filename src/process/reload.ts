/** Replaces the running config: files → validated → built → swapped, all or nothing. */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { configChanges, configHash } from '../config/diff.ts'
import { saveLastGood } from '../config/last-good.ts'
import { createInputs, type Environment, fingerprintOf } from '../config/read/inputs.ts'
import { loadSteps } from '../config/read/load.ts'
import { comparePlan } from '../config/risks.ts'
import type { Config } from '../config/schema/config.ts'
import { ConfigError, describeFault, type Fault } from '../config/schema/faults.ts'
import { tryConfig } from '../dry-run/try-config.ts'
import { massChange } from '../login/file-users.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { Operator } from '../ops/operator.ts'
import type { PlanAnswer, ReloadAnswer } from '../ops/state-schemas.ts'
import type { ReloadState } from '../services/gateway-state.ts'
import type { Log } from '../services/services.ts'
import type { PublicServer } from './server.ts'
import { createUserReview } from './user-review.ts'

export type Trigger = 'files changed' | 'SIGHUP' | 'operator'

interface Asking {
  readonly yes?: boolean
  readonly operator?: Pick<Operator, 'name' | 'via'> | undefined
}

export interface FilesAtStart {
  readonly state?: string | undefined
  /** Of files that were refused, while the config that was accepted at `lastGoodOf` runs. */
  readonly refused?: { readonly faults: readonly Fault[]; readonly lastGoodOf: string } | undefined
}

interface Options {
  readonly server: PublicServer
  readonly environment: Environment
  readonly atStart: FilesAtStart
  /** With each config that is about to replace another. @throws where it cannot be taken */
  readonly onBuilt: (config: Config) => void
}

const maxInLine = 12
const maxChanges = 20

export class Reloader {
  readonly #options: Options
  readonly #log: Log
  #state: ReloadState
  readonly #review: ReturnType<typeof createUserReview>
  #watch: ReturnType<typeof watchFiles> | undefined
  #isClosed = false
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: Options) {
    const { generations, services } = options.server
    const { config } = generations.current
    this.#options = options
    this.#log = services.log
    this.#review = createUserReview(options.server, () => this.#isClosed)
    this.#state = {
      files: { state: 'running' },
      restartNeeded: config.restartNeeded,
      taken: { at: new Date().toISOString(), by: 'start', changes: [] }
    }
    const { refused } = options.atStart
    if (refused === undefined) this.#keepLastGood(config)
    else this.#startRefused(refused)
  }

  get state(): ReloadState {
    return this.#state
  }

  async plan(): Promise<PlanAnswer> {
    const { config } = this.#options.server.generations.current
    const read = await this.#validate()
    if ('config' in read) return { ...comparePlan(config, read.config), faults: [] }
    return { changes: [], risks: [], faults: read.faults.map(describeFault) }
  }

  /** Requests are answered in between. @param running tells which keys need a restart */
  async #validate(running?: Config) {
    const { server, environment } = this.#options
    const { bases, folder } = server.generations.current.config
    const inputs = createInputs()
    let faults: readonly Fault[]
    try {
      const steps = loadSteps([...bases, folder], { ...environment }, { inputs, running })
      let step = steps.next()
      for (; step.done !== true; step = steps.next()) await requestsInBetween()
      const { fault, ...config } = step.value
      configHash(config)
      await requestsInBetween()
      faults = await tryConfig({ ...config, fault })
      if (faults.length === 0) return { inputs: inputs.fingerprints(), config }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults = error.faults
    }
    faults = faults.filter(({ severity }) => severity === 'fault')
    return { inputs: inputs.fingerprints(), faults }
  }

  /** Reviews all sessions; from now on a change of the files is a reload. */
  begin(): void {
    // Requests need not wait for it: each session is reviewed when it is used as well.
    void this.#review.reviewAll()
    const { gateway, inputs } = this.#options.server.generations.current.config
    if (!gateway.reload.watch) return
    this.#watch = watchFiles(inputs, () => void this.reload('files changed'))
  }

  /** Reads the files and runs their config. Faults of the files are an outcome, not an error. */
  async reload(by: Trigger, { yes = false, operator }: Asking = {}): Promise<ReloadAnswer> {
    const { ledger } = this.#options.server.services
    const reloading = this.#last.then(() => this.#takeFiles(by, yes))
    this.#last = reloading.catch(() => {})
    const outcome = await reloading
    if (outcome.outcome !== 'unchanged') ledger?.append(reloadEntry(outcome, by, operator))
    return outcome
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#watch?.close()
    await this.#last
  }

  async #takeFiles(by: Trigger, isConfirmed: boolean): Promise<ReloadAnswer> {
    const { config: before } = this.#options.server.generations.current
    try {
      const read = await this.#validate(before)
      this.#watch?.follow(read.inputs)
      if ('faults' in read) return this.#refuse(by, read.faults.map(describeFault))
      const { config } = read
      logNewWarnings(this.#log, before, config)
      this.#noteRestartNeeded(config.restartNeeded)
      const changes = configChanges(before, config).map(({ file, text }) =>
        file === 'users' ? `users ${text}` : text
      )
      if (changes.length === 0) return this.#keep(by)
      const mistake = isConfirmed ? undefined : massChange(before, config)
      if (mistake === undefined) return await this.#take(by, config, changes)
      const text = `${mistake}: if that is meant, run \`console-gateway reload --yes\``
      return this.#refuse(by, [text])
    } catch (error) {
      return this.#refuse(by, [`it could not be built: ${(error as Error).message}`])
    }
  }

  async #take(by: Trigger, config: Config, changes: readonly string[]): Promise<ReloadAnswer> {
    const { server, onBuilt } = this.#options
    const { number, config: before } = server.generations.current
    const generation = number + 1
    const next = await server.create(generation, config)
    try {
      onBuilt(config)
      server.activate(next)
    } catch (error) {
      await next.retire()
      throw error
    }
    const taken = { at: new Date().toISOString(), by, changes }
    this.#state = { ...this.#state, files: { state: 'running' }, taken }
    this.#keepLastGood(config)
    this.#log.info(
      { event: 'config.reloaded', generation, by, changes },
      `config reloaded: ${inWords(changes)}`
    )
    const sessions = await this.#review.reviewUsers(before, config)
    const { restartNeeded } = config
    return { outcome: 'reloaded', generation, changes, sessions, restartNeeded }
  }

  #startRefused({ faults: all, lastGoodOf }: NonNullable<FilesAtStart['refused']>): void {
    const taken = { at: lastGoodOf, by: 'start --last-good', changes: [] }
    this.#state = { ...this.#state, taken }
    this.#log.warn(
      { event: 'config.last-good', at: lastGoodOf },
      `started with the config that was accepted at ${lastGoodOf}, since the files are refused`
    )
    const faults = all.filter(({ severity }) => severity === 'fault')
    this.#refuse('start', faults.map(describeFault))
  }

  #keep(by: Trigger): ReloadAnswer {
    const { files, taken, restartNeeded } = this.#state
    const { number: generation } = this.#options.server.generations.current
    const fields = { event: 'config.unchanged', generation, by }
    if (files.state === 'refused') {
      this.#log.info(fields, 'the config files hold the running config again')
    } else if (by === 'SIGHUP') {
      this.#log.info(fields, 'the config files are unchanged: nothing to reload')
    }
    this.#state = { ...this.#state, files: { state: 'running' } }
    const unchanged = { outcome: 'unchanged', generation, restartNeeded } as const
    return taken.by === 'start' ? unchanged : { ...unchanged, taken }
  }

  #refuse(by: Trigger | 'start', texts: readonly string[]): ReloadAnswer {
    const { number: generation } = this.#options.server.generations.current
    const { files: before } = this.#state
    // An editor often saves a file in several steps: the same faults are logged once.
    const isKnown = by === 'files changed' && before.faults?.join('\n') === texts.join('\n')
    if (!isKnown) {
      const since = new Date().toISOString()
      this.#state = { ...this.#state, files: { state: 'refused', since, faults: texts } }
      this.#log.error(
        { event: 'config.refused', generation, by, faults: texts },
        `config refused, the running one stays: ${inWords(texts)}`
      )
    }
    return { outcome: 'refused', generation, faults: texts }
  }

  /** A config that cannot be kept runs all the same. */
  #keepLastGood(config: Config): void {
    const { state } = this.#options.atStart
    try {
      if (state !== undefined) saveLastGood(state, config)
    } catch (err) {
      this.#log.warn({ event: 'config.not-kept', err }, `the config cannot be kept in ${state}`)
    }
  }

  #noteRestartNeeded(keys: readonly string[]): void {
    if (keys.length > 0 && keys.join() !== this.#state.restartNeeded.join()) {
      const message = `restart needed: ${keys.join(', ')}`
      this.#log.warn({ event: 'config.restart-needed', keys }, message)
    }
    this.#state = { ...this.#state, restartNeeded: keys }
  }
}

function logNewWarnings(log: Log, before: Config, { warnings }: Config): void {
  const logged = new Set(before.warnings.map(({ path, message }) => path + message))
  const news = warnings.filter(({ path, message }) => !logged.has(path + message))
  for (const warning of news) log.warn({ config: warning.path }, describeFault(warning))
}

function reloadEntry(outcome: ReloadAnswer, by: Trigger, operator: Asking['operator']): AuditEntry {
  const { generation, changes = [], sessions = [], faults } = outcome
  const texts = faults ?? [...changes, ...sessions]
  const numbered = texts.slice(0, maxChanges).map((text, index) => [index + 1, text])
  return {
    kind: 'config.reload',
    operator: operator?.name ?? by,
    via: operator?.via,
    outcome: faults === undefined ? 'done' : 'refused',
    detail: { generation, ...Object.fromEntries(numbered) }
  }
}

function inWords(lines: readonly string[]): string {
  const more = lines.length - maxInLine
  const texts = more > 0 ? [...lines.slice(0, maxInLine), `and ${more} more`] : lines
  return texts.join('; ')
}

type Fingerprints = Readonly<Record<string, string>>

/**
 * Looks at config files every two seconds: a ConfigMap changes a link in their path, and not all
 * file systems send notifications.
 * @param onChange called when the files have changed, and been the same for two looks
 */
function watchFiles(read: Fingerprints, onChange: () => void) {
  let reported = read
  let last = read
  const timer = setInterval(() => {
    const now = Object.fromEntries(Object.keys(reported).map(file => [file, fingerprintOf(file)]))
    // A file that is being written differs from look to look.
    const isSettled = isDeepStrictEqual(now, last)
    last = now
    if (!isSettled || isDeepStrictEqual(now, reported)) return
    reported = now
    onChange()
  }, 2000).unref()
  return {
    /** From now on a change is one of what was read last. */
    follow: (next: Fingerprints): void => {
      reported = next
    },
    close: () => clearInterval(timer)
  }
}
