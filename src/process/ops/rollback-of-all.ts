/**
 * A rollback at all replicas or at none: each of them prepares it, and only if all have prepared it
 * each makes it. What is prepared ends by itself after a while.
 */
import { randomUUID } from 'node:crypto'
import { GatewayError } from '../../errors.ts'
import { isRecord } from '../../json/values.ts'
import type { Replies, ReplicaBus } from '../../services/replica-bus.ts'
import type { Log } from '../../services/services.ts'
import type { AskingOperator, Confirmed, HeldRollback, Outcome } from '../reload/outcome.ts'
import type { Reloader } from '../reload/reload.ts'

/** The outcome at one replica. */
export interface ReplicaOutcome {
  readonly replica: string
  /** `kept`: it could, but was not asked to. */
  readonly outcome: Outcome['outcome'] | 'kept' | 'not confirmed'
  readonly generation?: number
  readonly changes?: readonly string[]
  readonly sessions?: readonly string[]
  readonly restartNeeded?: readonly string[]
  /** Why it was refused, or is not known. */
  readonly faults?: readonly string[]
}

export interface RollbackOfAllResult {
  /** `refused`: no replica has changed. `incomplete`: some did not confirm it. */
  readonly outcome: 'rolled back' | 'refused' | 'incomplete'
  readonly hash: string
  readonly replicas: readonly ReplicaOutcome[]
  /** In words; empty where all have rolled back. */
  readonly reasons: readonly string[]
}

interface Options {
  readonly bus: ReplicaBus
  readonly reloader: Pick<Reloader, 'holdRollback'>
  readonly log: Log
}

interface Hold {
  readonly id: string
  isAborted: boolean
  rollback?: HeldRollback
  timer?: NodeJS.Timeout
  /** Once it is committed: the same for a second message. */
  outcome?: Promise<Outcome>
}

interface Message {
  readonly id: string
  readonly hash: string
  readonly yes: boolean
  readonly operator: AskingOperator
}

const replyMs = 5000
/** At the replica that is asked, too: the others let go of what they hold if it takes longer. */
const prepareMs = 4000
/** More than one question and two commits take. */
const holdMs = 20_000

export class RollbackOfAll {
  readonly #options: Options
  /** Of this replica. */
  #hold: Hold | undefined

  constructor(options: Options) {
    this.#options = options
    const { bus } = options
    bus.serve('rollback.prepare', message => this.#prepare(message as Message))
    bus.serve('rollback.commit', message => this.#commit(message as Message))
    bus.serve('rollback.abort', message => this.#abort(message as Message))
  }

  /** @throws GatewayError `ops.redis`; then nothing has changed */
  async run(hash: string, { yes = false, operator }: Confirmed): Promise<RollbackOfAllResult> {
    const { bus, log } = this.#options
    const message: Message = { id: randomUUID(), hash, yes, operator }
    const prepared = await bus.ask('rollback.prepare', message, replyMs)
    const refusals = refusalsOf(prepared)
    if (refusals.length === 0 && prepared.problem === undefined) {
      return await this.#commitAll(message, prepared)
    }
    // Also to those that were silent: they may only be slow.
    await bus.ask('rollback.abort', message, replyMs)
    if (prepared.problem !== undefined) throw new GatewayError('ops.redis')
    const reasons = refusals.map(inWords)
    log.warn(
      { event: 'config.rollback-aborted', hash, reasons },
      'rollback of all replicas refused'
    )
    const kept = prepared.replies
      .filter(reply => 'value' in reply)
      .map(({ replica }) => ({ replica, outcome: 'kept' as const }))
    return { outcome: 'refused', hash, replicas: [...kept, ...refusals], reasons }
  }

  async #commitAll(message: Message, { replies }: Replies): Promise<RollbackOfAllResult> {
    const confirmed = new Map<string, ReplicaOutcome>()
    const failed = new Map<string, ReplicaOutcome>()
    const expected = replies.map(({ replica }) => replica)
    const isDone = () => expected.every(id => confirmed.has(id))
    // A message may be lost while a replica connects to Redis again: the second finds it.
    for (let round = 0; round < 2 && !isDone(); round++) {
      const { replies: done } = await this.#options.bus.ask('rollback.commit', message, replyMs)
      for (const reply of done) {
        const { replica } = reply
        if ('value' in reply) confirmed.set(replica, outcomeOf(replica, reply.value))
        else failed.set(replica, notConfirmed(replica, reply.error))
      }
    }
    const silence = 'it did not answer; if it starts again, it runs the config of its files'
    const replicas = expected.map(
      id => confirmed.get(id) ?? failed.get(id) ?? notConfirmed(id, silence)
    )
    const missing = replicas.filter(({ faults }) => faults !== undefined)
    return {
      outcome: missing.length === 0 ? 'rolled back' : 'incomplete',
      hash: message.hash,
      replicas,
      reasons: missing.map(inWords)
    }
  }

  async #prepare(message: Message): Promise<object> {
    if (this.#hold !== undefined && this.#hold.outcome === undefined) {
      throw new GatewayError('ops.held')
    }
    const hold: Hold = { id: message.id, isAborted: false }
    this.#hold = hold
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      hold.isAborted = true
      const reason = `not prepared within ${prepareMs} ms: another reload may be under way here`
      late.reject(new Error(reason))
    }, prepareMs)
    try {
      return await Promise.race([this.#take(hold, message), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  async #take(hold: Hold, { hash, yes, operator }: Message): Promise<object> {
    try {
      hold.rollback = await this.#options.reloader.holdRollback(hash, { yes, operator })
    } catch (error) {
      this.#end(hold)
      throw error
    }
    if (hold.isAborted) {
      this.#end(hold)
      throw new Error('it was aborted before it was prepared')
    }
    hold.timer = setTimeout(() => this.#end(hold), holdMs).unref()
    const message = `a rollback of all replicas to the config ${hash} is prepared`
    this.#options.log.info({ event: 'config.rollback-held', hash }, message)
    return {}
  }

  async #commit({ id }: Message): Promise<Outcome> {
    const hold = this.#hold
    if (hold?.id !== id || hold.rollback === undefined) {
      throw new Error('it no longer holds this rollback, and keeps its config')
    }
    clearTimeout(hold.timer)
    hold.outcome ??= hold.rollback.commit()
    return await hold.outcome
  }

  #abort({ id }: Message): void {
    const hold = this.#hold
    if (hold?.id !== id || hold.outcome !== undefined) return
    hold.isAborted = true
    if (hold.rollback !== undefined) this.#end(hold)
  }

  #end(hold: Hold): void {
    clearTimeout(hold.timer)
    hold.rollback?.release()
    if (this.#hold === hold) this.#hold = undefined
  }
}

function refusalsOf({ replies, silent }: Replies): ReplicaOutcome[] {
  const refused = replies.flatMap(reply =>
    'error' in reply
      ? [{ replica: reply.replica, outcome: 'refused' as const, faults: [reply.error] }]
      : []
  )
  return [...refused, ...silent.map(id => notConfirmed(id, 'it did not answer in time'))]
}

function notConfirmed(replica: string, reason: string): ReplicaOutcome {
  return { replica, outcome: 'not confirmed', faults: [reason] }
}

/** Of a replica that replied to a reload or a rollback. */
export function outcomeOf(replica: string, value: unknown): ReplicaOutcome {
  // A replica of another release may answer something else.
  if (!isRecord(value) || typeof value['outcome'] !== 'string') {
    return notConfirmed(replica, 'its answer is not known here: it runs another version')
  }
  return { replica, ...(value as unknown as Outcome) }
}

export function inWords({ replica, faults = [] }: ReplicaOutcome): string {
  return `${replica}: ${faults.join('; ')}`
}
