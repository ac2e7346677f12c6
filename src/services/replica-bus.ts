/**
 * Questions to all replicas and their replies, through channels of Redis. Without Redis the bus
 * reaches this replica alone.
 */
import type { Cluster, Redis } from 'ioredis'
import { type ReplicaDirectory, type ReplicaInfo } from './replica-directory.ts'
import type { Question, Reply, ReplicaMessages } from './replica-messages.ts'
import type { Seal } from '../session/seal.ts'

export type { ReplicaInfo } from './replica-directory.ts'

/** Answers a question of a replica; its error's message goes to the asker. */
type Handler = (payload: unknown, from: string) => unknown

export type ReplicaReply = { readonly replica: string } & (
  | { readonly value: unknown }
  | { readonly error: string }
)

export interface Replies {
  /** That of this replica first. */
  readonly replies: readonly ReplicaReply[]
  /** Replicas that did not reply in time. */
  readonly silent: readonly string[]
  /** Why other replicas could not be asked. */
  readonly problem?: string
}

export interface ReplicaBus {
  /** For people too: the host's name with a random end. */
  readonly id: string
  readonly serve: (kind: string, handler: Handler) => void
  /** Asks all replicas, this one included. @param payload anything that JSON can hold */
  readonly ask: (kind: string, payload: unknown, timeoutMs: number) => Promise<Replies>
  /** Replicas seen of late, this one first; those last known while Redis is away. */
  readonly replicas: () => Promise<readonly ReplicaInfo[]>
}

interface LocalOptions {
  readonly id: string
  readonly describe: () => Promise<ReplicaInfo>
}

/** The handlers of this replica; also the bus of one that shares no Redis. */
export class LocalBus implements ReplicaBus {
  readonly id: string
  readonly describe: () => Promise<ReplicaInfo>
  readonly #handlers = new Map<string, Handler>()

  constructor({ id, describe }: LocalOptions) {
    this.id = id
    this.describe = describe
  }

  serve(kind: string, handler: Handler): void {
    this.#handlers.set(kind, handler)
  }

  async ask(kind: string, payload: unknown, _timeoutMs?: number): Promise<Replies> {
    const reply = await this.replyTo({ kind, payload, from: this.id })
    return { replies: [{ replica: this.id, ...reply }], silent: [] }
  }

  async replicas(): Promise<readonly ReplicaInfo[]> {
    return [await this.describe()]
  }

  async replyTo({ kind, payload, from }: Pick<Question, 'kind' | 'payload' | 'from'>) {
    const handler = this.#handlers.get(kind)
    if (handler === undefined) {
      return { error: `this replica does not know ${kind}: it runs another version` }
    }
    try {
      return { value: (await handler(payload, from)) ?? null }
    } catch (error) {
      return { error: (error instanceof Error ? error.message : String(error)).slice(0, 1000) }
    }
  }
}

interface SharedOptions {
  readonly local: LocalBus
  readonly redis: Redis | Cluster
  readonly prefix: string
  readonly messages: ReplicaMessages
  readonly directory: ReplicaDirectory
  /** Whether replies arrive at the moment. */
  readonly isUp: () => boolean
  readonly onCrowded: () => void
}

interface Pending {
  readonly replies: Map<string, ReplicaReply>
  readonly onReply: () => void
}

/** Questions of others that are being answered at once. */
const maxAnswering = 64
const unavailable = 'Redis is unavailable: only this replica was asked'

export class SharedBus implements ReplicaBus {
  readonly id: string
  readonly #options: SharedOptions
  readonly #pending = new Map<string, Pending>()
  #answering = 0
  /** As last read. */
  #others: readonly ReplicaInfo[] = []

  constructor(options: SharedOptions) {
    this.#options = options
    this.id = options.local.id
  }

  serve(kind: string, handler: Handler): void {
    this.#options.local.serve(kind, handler)
  }

  async replicas(): Promise<readonly ReplicaInfo[]> {
    const { local, directory } = this.#options
    const [info, list] = await Promise.all([
      local.describe(),
      directory.list().catch(() => undefined)
    ])
    if (list !== undefined) this.#others = list.filter(({ id }) => id !== this.id)
    return [info, ...this.#others]
  }

  async ask(kind: string, payload: unknown, timeoutMs: number): Promise<Replies> {
    const [local, others] = await Promise.all([
      this.#options.local.ask(kind, payload),
      this.#askOthers(kind, payload, timeoutMs)
    ])
    return { ...others, replies: [...local.replies, ...others.replies] }
  }

  async #askOthers(kind: string, payload: unknown, timeoutMs: number): Promise<Replies> {
    const { redis, prefix, messages, isUp } = this.#options
    await this.replicas()
    const expected = this.#others.map(({ id }) => id)
    if (!isUp()) return { replies: [], silent: expected, problem: unavailable }
    const { nonce, text } = messages.closeQuestion(kind, payload)
    const over = Promise.withResolvers<void>()
    const timer = setTimeout(over.resolve, timeoutMs)
    const replies = new Map<string, ReplicaReply>()
    const onReply = () => {
      if (expected.every(id => replies.has(id))) over.resolve()
    }
    this.#pending.set(nonce, { replies, onReply })
    try {
      await redis.publish(questionChannel(prefix), text)
      onReply()
      await over.promise
      return { replies: [...replies.values()], silent: expected.filter(id => !replies.has(id)) }
    } catch {
      return { replies: [], silent: expected, problem: unavailable }
    } finally {
      clearTimeout(timer)
      this.#pending.delete(nonce)
    }
  }

  /** Takes a message from a channel of `channelsOf`. */
  receive(channel: string, text: string): void {
    const { prefix, messages } = this.#options
    if (channel !== questionChannel(prefix)) {
      const reply = messages.openReply(text)
      if (reply !== undefined) this.#takeReply(reply)
      return
    }
    const opened = messages.openQuestion(text)
    if (opened !== undefined) void this.#reply(opened.question, opened.replySeal)
  }

  #takeReply({ nonce, from, ...reply }: Reply): void {
    const pending = this.#pending.get(nonce)
    if (pending === undefined || pending.replies.has(from)) return
    const isError = 'error' in reply
    pending.replies.set(from, {
      replica: from,
      ...(isError ? { error: reply.error } : { value: reply.value })
    })
    pending.onReply()
  }

  async #reply(question: Question, replySeal: Seal): Promise<void> {
    const { local, redis, prefix, messages, onCrowded } = this.#options
    if (this.#answering >= maxAnswering) return onCrowded()
    this.#answering++
    try {
      const reply = await local.replyTo(question)
      const text = messages.closeReply(question, replySeal, reply)
      await redis.publish(replyChannel(prefix, question.from), text)
    } catch {
      // The asker names this replica as silent.
    } finally {
      this.#answering--
    }
  }
}

export function channelsOf(prefix: string, id: string): readonly string[] {
  return [questionChannel(prefix), replyChannel(prefix, id)]
}

function questionChannel(prefix: string): string {
  return `${prefix}replica-questions`
}

function replyChannel(prefix: string, id: string): string {
  return `${prefix}replica-replies:${id}`
}
