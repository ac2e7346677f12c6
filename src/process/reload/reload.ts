/** Replaces the running config: files → examined → built → swapped, all or nothing; keeps the last ten and what became of the last attempt. */
import { differences } from '../../config/load/differences.ts'
import { describeFault, type Fault } from '../../config/schema/faults.ts'
import type { GatewayConfig } from '../../config/schema/gateway.ts'
import type { Config } from '../../config/schema/config.ts'
import { GatewayError } from '../../errors.ts'
import type { Validated } from './validator.ts'
import type { Generation } from '../server/generation.ts'
import { createRevisions, type Revision } from './revisions.ts'

export type Trigger = 'files changed' | 'SIGHUP' | 'operator'

export type Outcome =
  | {
      readonly outcome: 'reloaded' | 'rolled back'
      readonly generation: number
      readonly changes: readonly string[]
      /** What became of the sessions of users that changed. */
      readonly sessions: readonly string[]
      readonly restartNeeded: readonly string[]
    }
  | {
      readonly outcome: 'unchanged'
      readonly generation: number
      readonly restartNeeded: readonly string[]
      /** How what runs came to run; undefined where it is what the process started with. */
      readonly taken?: {
        readonly at: string
        readonly by: string
        readonly changes: readonly string[]
      }
    }
  | { readonly outcome: 'refused'; readonly generation: number; readonly faults: readonly string[] }

/** How the files stand to what runs. */
export type FilesState =
  | { readonly state: 'running' }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }
  | { readonly state: 'rolled back'; readonly since: string }

/** Whether it is meant that most sessions of file users end. */
export interface Confirmed {
  readonly yes?: boolean
}

export interface Reloader {
  readonly current: () => Generation
  /** Reads the files and takes what they say. Never throws for what they hold. */
  readonly reload: (by: Trigger, confirmed?: Confirmed) => Promise<Outcome>
  /**
   * Takes an earlier config once more; the one before that which runs, without a number. The files stay as they are.
   * @throws GatewayError `request.malformed` when there is none
   */
  readonly rollback: (to?: number, confirmed?: Confirmed) => Promise<Outcome>
  readonly files: () => FilesState
  readonly restartNeeded: () => readonly string[]
  readonly revisions: () => readonly Revision[]
  /** The generations that still answer what began in them. */
  readonly draining: () => ReadonlyArray<{ readonly generation: number; readonly requests: number }>
  /** Ends what is draining. */
  readonly close: () => Promise<void>
}

interface Options {
  readonly first: Generation
  readonly validate: (running: GatewayConfig) => Promise<Validated>
  readonly create: (number: number, config: Config) => Promise<Generation>
  /** From then on requests begin in this one. */
  readonly activate: (generation: Generation) => Promise<void>
  /** Why a change of users files has to be confirmed; undefined where it need not. */
  readonly massClosing: (
    before: Config,
    after: Config,
    command: string
  ) => Promise<string | undefined>
  /** Holds live sessions against the users in force. @returns what became of them, for people */
  readonly reviewUsers: (before: Config, after: Config) => Promise<readonly string[]>
  /** Told of the files that the config is read from, whenever they were. */
  readonly onFiles: (files: readonly string[]) => void
  readonly onOutcome: (outcome: Outcome['outcome'], generation: number) => void
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>
}

const mostInLine = 12

export function createReloader({
  first,
  validate: examine,
  create,
  activate: use,
  massClosing,
  reviewUsers,
  onFiles,
  onOutcome,
  log
}: Options): Reloader {
  let current = first
  let files: FilesState = { state: 'running' }
  let restartNeeded = first.config.restartNeeded
  const revisions = createRevisions(first.config)
  const draining = new Map<Generation, Promise<void>>()
  const { grace } = first.config.gateway.reload

  // One at a time, and what is asked for while one waits is that one.
  let last: Promise<unknown> = Promise.resolve()
  let waiting: Promise<Outcome> | undefined
  let isConfirmed = false
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }
  const told = (outcome: Outcome): Outcome => {
    onOutcome(outcome.outcome, outcome.generation)
    return outcome
  }

  async function takeFiles(by: Trigger): Promise<Outcome> {
    waiting = undefined
    const mayEndMost = isConfirmed
    isConfirmed = false
    let examined: Validated
    try {
      examined = await examine(current.config.gateway)
    } catch (error) {
      return refuse(by, [error instanceof Error ? error.message : String(error)])
    }
    onFiles(examined.files)
    const { result } = examined
    if ('faults' in result) return refuse(by, result.faults.filter(isFault).map(describeFault))
    const { config } = result
    const changes = differences(current.config, config).map(({ file, text }) =>
      file === 'users' ? `users ${text}` : text
    )
    tellWarnings(config)
    tellRestart(config.restartNeeded)
    if (changes.length === 0) {
      if (files.state !== 'running' || by === 'SIGHUP') {
        const message =
          files.state === 'running'
            ? 'the config files are what runs: nothing to reload'
            : 'the config files are again what runs'
        log.info({ event: 'config.unchanged', generation: current.number, by }, message)
      }
      files = { state: 'running' }
      return unchanged()
    }
    const before = current.config
    const reason = mayEndMost ? undefined : await massClosing(before, config, 'reload')
    if (reason !== undefined) return refuse(by, [reason])
    try {
      await take(config)
    } catch (error) {
      return refuse(by, [
        `it could not be built: ${error instanceof Error ? error.message : String(error)}`
      ])
    }
    files = { state: 'running' }
    revisions.add({ number: current.number, by, changes, config })
    log.info(
      { event: 'config.reloaded', generation: current.number, by, changes },
      `config reloaded: ${inWords(changes)}`
    )
    const sessions = await reviewUsers(before, config)
    return { outcome: 'reloaded', generation: current.number, changes, sessions, restartNeeded }
  }

  async function takeBack(to: number | undefined, { yes = false }: Confirmed): Promise<Outcome> {
    const target = revisions.find(to)
    if (target === undefined)
      throw new GatewayError('request.malformed', {
        message:
          to === undefined
            ? `There is no earlier config to go back to. Name one with its number: ${revisions
                .all()
                .map(({ number }) => number)
                .join(', ')}.`
            : `There is no revision ${to}; there are ${revisions
                .all()
                .map(({ number }) => number)
                .join(', ')}.`
      })
    const changes = differences(current.config, target.config).map(({ text }) => text)
    if (changes.length === 0) return unchanged()
    const before = current.config
    const command = to === undefined ? 'rollback' : `rollback ${to}`
    const reason = yes ? undefined : await massClosing(before, target.config, command)
    if (reason !== undefined) return refuseBack(target, reason)
    await take(target.config)
    files = { state: 'rolled back', since: new Date().toISOString() }
    revisions.add({
      number: current.number,
      by: 'rollback',
      changes,
      config: target.config,
      of: target.of ?? target.number,
      named: to !== undefined
    })
    log.warn(
      { event: 'config.rolled-back', generation: current.number, to: target.number, changes },
      `config rolled back to revision ${target.number}: ${inWords(changes)}; the files hold another one, which comes back with their next change, a reload or a restart`
    )
    const sessions = await reviewUsers(before, target.config)
    return { outcome: 'rolled back', generation: current.number, changes, sessions, restartNeeded }
  }

  function unchanged(): Outcome {
    const [running] = revisions.all()
    const taken = running === undefined || running.number === 1 ? undefined : running
    return {
      outcome: 'unchanged',
      generation: current.number,
      restartNeeded,
      ...(taken !== undefined && { taken: { at: taken.at, by: taken.by, changes: taken.changes } })
    }
  }

  /** @throws what building throws; then nothing has changed */
  async function take(config: Config): Promise<void> {
    const old = current
    const next = await create(old.number + 1, config)
    await use(next)
    current = next
    draining.set(
      old,
      old
        .retire(grace)
        .then(
          ended => {
            if (ended > 0)
              log.warn(
                { event: 'config.drained', generation: old.number, ended },
                `requests that began before a reload were still running after ${grace} ms: ended`
              )
          },
          err => log.error({ err }, 'an old generation could not be closed')
        )
        .finally(() => draining.delete(old))
    )
  }

  function refuse(by: Trigger, faults: readonly string[]): Outcome {
    // One save of an editor is often several changes of the file: what was told once is not told again.
    const isTold =
      by === 'files changed' &&
      files.state === 'refused' &&
      files.faults.join('\n') === faults.join('\n')
    if (isTold) return { outcome: 'refused', generation: current.number, faults }
    files = { state: 'refused', since: new Date().toISOString(), faults }
    log.error(
      { event: 'config.refused', generation: current.number, by, faults },
      `config refused, what runs goes on: ${inWords(faults)}`
    )
    return { outcome: 'refused', generation: current.number, faults }
  }

  /** The files stand to what runs as they did before. */
  function refuseBack(target: Revision, reason: string): Outcome {
    const { number: generation } = current
    const fields = { event: 'config.rollback-refused', generation, to: target.number, reason }
    log.error(fields, `rollback to revision ${target.number} refused, what runs goes on: ${reason}`)
    return { outcome: 'refused', generation, faults: [reason] }
  }

  function tellRestart(keys: readonly string[]): void {
    if (keys.length > 0 && keys.join() !== restartNeeded.join())
      log.warn({ event: 'config.restart-needed', keys }, `restart needed: ${keys.join(', ')}`)
    restartNeeded = keys
  }

  function tellWarnings({ warnings }: Config): void {
    const known = new Set(current.config.warnings.map(({ path, message }) => path + message))
    for (const warning of warnings)
      if (!known.has(warning.path + warning.message))
        log.warn({ config: warning.path }, describeFault(warning))
  }

  return {
    current: () => current,
    reload: (by, { yes = false } = {}) => {
      isConfirmed ||= yes
      waiting ??= inTurn(async () => told(await takeFiles(by)))
      return waiting
    },
    rollback: (to, confirmed = {}) => inTurn(async () => told(await takeBack(to, confirmed))),
    files: () => files,
    restartNeeded: () => restartNeeded,
    revisions: revisions.all,
    draining: () =>
      [...draining.keys()].map(generation => ({
        generation: generation.number,
        requests: generation.requests()
      })),
    close: async () => {
      await last
      await Promise.all([current, ...draining.keys()].map(generation => generation.retire(0)))
      await Promise.all(draining.values())
    }
  }
}

function isFault({ severity }: Fault) {
  return severity === 'fault'
}

function inWords(lines: readonly string[]) {
  return [
    ...lines.slice(0, mostInLine),
    ...(lines.length > mostInLine ? [`and ${lines.length - mostInLine} more`] : [])
  ].join('; ')
}
