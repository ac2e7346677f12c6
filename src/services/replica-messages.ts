/**
 * Messages between replicas: sealed, with sender, time and nonce. A message that was planted,
 * changed, kept back or sent twice is refused, and cannot cost more than to be ignored.
 */
import { randomBytes } from 'node:crypto'
import { BoundedMap } from '../bounded-map.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Seal } from '../session/seal.ts'
import type { ReplicaSeal } from './replica-seal.ts'

/** Why a message was refused. */
export type RefusedReason = 'oversized' | 'foreign' | 'unsealed' | 'stale' | 'replayed' | 'crowded'

export interface Question {
  readonly nonce: string
  readonly from: string
  /** By the clock of Redis, in milliseconds since the epoch. */
  readonly at: number
  readonly kind: string
  readonly payload: unknown
}

export type Reply = { readonly nonce: string; readonly from: string } & (
  | { readonly value: unknown }
  | { readonly error: string }
)

/** Older than this, or so far in the future, a message is refused. */
const maxAgeMs = 30_000
const maxQuestionLength = 256 * 1024
const maxReplyLength = 12 * 1024 * 1024
const maxNonces = 10_000

interface Options {
  readonly seal: ReplicaSeal
  readonly id: string
  /** The clock of Redis. */
  readonly now: () => number
  /** Milliseconds of a monotonic clock. */
  readonly ticks: () => number
  readonly onRefused: (reason: RefusedReason) => void
}

export class ReplicaMessages {
  readonly #options: Options
  readonly #openedAt: number
  /** By nonce, when it was seen: for as long as a copy of its message would be taken. */
  readonly #seen = new BoundedMap<number>(maxNonces)

  constructor(options: Options) {
    this.#options = options
    this.#openedAt = options.ticks()
  }

  /** @throws RangeError when it is too long */
  closeQuestion(kind: string, payload: unknown): { readonly nonce: string; readonly text: string } {
    const { seal, id, now } = this.#options
    const nonce = randomBytes(16).toString('base64url')
    const question: Question = { nonce, from: id, at: now(), kind, payload }
    const text = seal.close('question', JSON.stringify(question))
    if (text.length > maxQuestionLength) throw new RangeError('the message is too long')
    return { nonce, text }
  }

  /** @returns undefined for a refused message, and for one of our own */
  openQuestion(
    text: string
  ): { readonly question: Question; readonly replySeal: Seal } | undefined {
    if (text.length > maxQuestionLength) return this.#refuse('oversized')
    const opened = this.#open('question', text)
    if (opened === undefined) return undefined
    const question = parseKeepingDigits(opened.text) as unknown as Question
    if (question.from === this.#options.id) return undefined
    const reason = this.#reasonAgainst(question)
    return reason === undefined ? { question, replySeal: opened.seal } : this.#refuse(reason)
  }

  /** Sealed with the secret of the question, for the asker alone. */
  closeReply({ nonce, from }: Question, replySeal: Seal, reply: object): string {
    const { id } = this.#options
    const close = (content: object) =>
      replySeal.close(`reply ${from}`, JSON.stringify({ nonce, from: id, ...content }))
    const text = close(reply)
    return text.length > maxReplyLength ? close({ error: 'the reply is too long' }) : text
  }

  openReply(text: string): Reply | undefined {
    if (text.length > maxReplyLength) return this.#refuse('oversized')
    const opened = this.#open(`reply ${this.#options.id}`, text)
    return opened && (parseKeepingDigits(opened.text) as unknown as Reply)
  }

  #open(context: string, text: string) {
    const { seal } = this.#options
    const opened = seal.open(context, text)
    return opened ?? this.#refuse(seal.isForeign(text) ? 'foreign' : 'unsealed')
  }

  #reasonAgainst({ nonce, at }: Question): RefusedReason | undefined {
    const { now, ticks } = this.#options
    const age = now() - at
    // One from before this process began may have been answered by its predecessor.
    const maxAge = Math.min(maxAgeMs, ticks() - this.#openedAt)
    if (!(age <= maxAge && age >= -maxAgeMs)) return 'stale'
    if (this.#seen.peek(nonce) !== undefined) return 'replayed'
    if (!this.#hasRoom()) return 'crowded'
    this.#seen.set(nonce, ticks())
    return undefined
  }

  /** A nonce is forgotten only when its message would be refused for its age. */
  #hasRoom(): boolean {
    const forgetBefore = this.#options.ticks() - 2 * maxAgeMs
    for (const [nonce, seenAt] of this.#seen.oldestFirst()) {
      if (seenAt >= forgetBefore) break
      this.#seen.delete(nonce)
    }
    return this.#seen.size < maxNonces
  }

  #refuse(reason: RefusedReason): undefined {
    this.#options.onRefused(reason)
    return undefined
  }
}
