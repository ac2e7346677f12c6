/**
 * Writes trails of ended requests as bytes, and reads them. Objects that live as long as thousands
 * of requests would be moved by each young garbage collection; bytes are not.
 */
import { TrailNames } from './trail-names.ts'
import { Trail, TrailAttempt, type TrailRule, type TrailVerdict } from './trail.ts'

/** Longer texts are cut. */
const maxTextLength = 512
/** More rules, attempts, missing parts or roles of one request are not written. */
const maxListed = 64
const noText = 0xffff
const textCount = 7

/** The most bytes of one trail: three for each unit of its texts, and its numbers and lists. */
export const maxTrailBytes = textCount * 3 * maxTextLength + maxListed * 64 + 256

const isCutFlag = 1
const hasDetailsFlag = 2
const isFallbackFlag = 4

const hasVerdictFlag = 1
const isExceededFlag = 2

/** A value of `undefined` is NaN among the numbers. */
function optional(number: number): number | undefined {
  return Number.isNaN(number) ? undefined : number
}

/** The members by which a trail is searched. */
export type TrailKey = Pick<Trail, 'requestId' | 'user' | 'userId' | 'route' | 'status' | 'code'>

function hasDetails(trail: Trail): boolean {
  return (
    trail.alias !== undefined ||
    trail.limit !== undefined ||
    trail.missing !== undefined ||
    trail.sessionEnded !== undefined ||
    trail.limitMax !== undefined ||
    trail.needsRoles !== undefined
  )
}

/**
 * perf: 0.5 µs for a request with a limit and an attempt. All texts are written by one call, which
 * takes as long as 50 characters; what returns in many trails is a number.
 */
export class TrailBytes {
  readonly #buffer: Buffer
  readonly #view: DataView
  readonly #names = new TrailNames()
  #at = 0

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafeSlow(size)
    this.#view = new DataView(this.#buffer.buffer)
  }

  get size(): number {
    return this.#buffer.length
  }

  /** The number of names that have a number, of 16 bits. */
  get names(): number {
    return this.#names.size
  }

  /**
   * @param start of at least `maxTrailBytes` bytes
   * @returns its end
   */
  write(trail: Trail, start: number): number {
    this.#at = start
    this.#putDouble(trail.at)
    this.#putDouble(trail.startedAt)
    this.#putDouble(trail.sessionOpenedAt ?? NaN)
    this.#putDouble(trail.sent ?? NaN)
    this.#putFloat(trail.ms)
    this.#putFloat(trail.sessionMs)
    this.#putFloat(trail.limitsMs)
    this.#putFloat(trail.queueMs)
    this.#putFloat(trail.upstreamMs ?? NaN)
    this.#putFloat(trail.shapeMs)
    this.#putShort(trail.status)
    this.#putName(trail.method)
    this.#putName(trail.route)
    this.#putName(trail.upstream)
    this.#putName(trail.source)
    this.#putName(trail.sessionFrom)
    this.#putName(trail.code)
    const isDetailed = hasDetails(trail)
    const fallbackFlag = trail.isFallback ? isFallbackFlag : 0
    const cutFlag = trail.isCut ? isCutFlag : 0
    this.#putShort(cutFlag | fallbackFlag | (isDetailed ? hasDetailsFlag : 0))
    this.#putTexts(trail)
    if (isDetailed) this.#putDetails(trail)
    this.#putRules(trail)
    this.#putAttempts(trail)
    return this.#at
  }

  #putDetails(trail: Trail): void {
    this.#putName(trail.alias?.path)
    this.#putName(trail.alias?.target)
    this.#putName(trail.limit)
    this.#putName(trail.sessionEnded)
    this.#putDouble(trail.limitMax ?? NaN)
    this.#putNames(trail.missing)
    this.#putNames(trail.needsRoles)
  }

  #putRules({ rules, verdicts }: Trail): void {
    const count = Math.min(rules.length, maxListed)
    this.#putShort(count)
    for (let index = 0; index < count; index++) {
      const verdict = verdicts[index]
      this.#putShort(this.#names.numberOfRule(rules[index] as TrailRule))
      const exceeded = verdict?.exceeded === true ? isExceededFlag : 0
      this.#putShort(verdict === undefined ? 0 : hasVerdictFlag | exceeded)
      this.#putDouble(verdict?.remaining ?? NaN)
      this.#putDouble(verdict?.resetMs ?? NaN)
    }
  }

  #putAttempts({ attempts = [], startedAt }: Trail): void {
    const count = Math.min(attempts.length, maxListed)
    this.#putShort(count)
    for (let index = 0; index < count; index++) {
      const attempt = attempts[index] as TrailAttempt
      this.#putName(attempt.upstream)
      this.#putName(attempt.address)
      this.#putName(attempt.purpose)
      this.#putName(attempt.part)
      this.#putName(attempt.failure)
      this.#putName(attempt.reason)
      this.#putShort(attempt.status ?? 0)
      this.#putFloat(attempt.startedAt - startedAt)
      this.#putFloat(attempt.ms ?? NaN)
    }
  }

  #putTexts(trail: Trail): void {
    let text = this.#putLength(trail.requestId)
    text += this.#putLength(trail.path)
    text += this.#putLength(trail.address)
    text += this.#putLength(trail.user)
    text += this.#putLength(trail.userId)
    text += this.#putLength(trail.session)
    text += this.#putLength(trail.trace?.traceId)
    const start = this.#at + 2
    const length = this.#buffer.write(text, start)
    this.#putShort(length)
    this.#at = start + length
  }

  #putDouble(value: number): void {
    this.#view.setFloat64(this.#at, value)
    this.#at += 8
  }

  #putFloat(value: number): void {
    this.#view.setFloat32(this.#at, value)
    this.#at += 4
  }

  #putShort(value: number): void {
    this.#view.setUint16(this.#at, value)
    this.#at += 2
  }

  #putName(name: string | undefined): void {
    this.#putShort(this.#names.numberOf(name))
  }

  #putNames(names: readonly string[] = []): void {
    const count = Math.min(names.length, maxListed)
    this.#putShort(count)
    for (let index = 0; index < count; index++) this.#putName(names[index])
  }

  /** @returns what stands among the texts */
  #putLength(text: string | undefined): string {
    this.#putShort(text === undefined ? noText : Math.min(text.length, maxTextLength))
    if (text === undefined) return ''
    return text.length > maxTextLength ? text.slice(0, maxTextLength) : text
  }

  /** @param start of what `write` wrote */
  read(start: number): Trail {
    const { method, requestId, path, address, flags, ...members } = this.#readMembers(start)
    return Object.assign(new Trail(requestId, method, path, address), {
      ...members,
      isCut: (flags & isCutFlag) !== 0,
      isFallback: (flags & isFallbackFlag) !== 0,
      ...((flags & hasDetailsFlag) !== 0 && this.#details()),
      ...this.#rules(),
      attempts: this.#attempts(members.startedAt)
    }) as Trail
  }

  /** perf: 0.9 µs, where `read` takes 3 µs: a search may go through all trails. */
  readKey(start: number): TrailKey {
    return this.#readMembers(start) as TrailKey
  }

  #readMembers(start: number) {
    this.#at = start
    const numbers = {
      at: this.#double(),
      startedAt: this.#double(),
      sessionOpenedAt: optional(this.#double()),
      sent: optional(this.#double()),
      ms: this.#float(),
      sessionMs: this.#float(),
      limitsMs: this.#float(),
      queueMs: this.#float(),
      upstreamMs: optional(this.#float()),
      shapeMs: this.#float(),
      status: this.#short(),
      method: this.#name() ?? '',
      route: this.#name(),
      upstream: this.#name(),
      source: this.#name(),
      sessionFrom: this.#name(),
      code: this.#name(),
      flags: this.#short()
    }
    const [requestId = '', path = '', address = '', ...others] = this.#texts()
    const [user, userId, session, traceId] = others
    const trace = traceId === undefined ? undefined : { traceId }
    return { ...numbers, requestId, path, address, user, userId, session, trace }
  }

  #details(): object {
    const path = this.#name()
    const target = this.#name()
    return {
      alias: path === undefined ? undefined : { path, target },
      limit: this.#name(),
      sessionEnded: this.#name(),
      limitMax: optional(this.#double()),
      missing: this.#nameList(),
      needsRoles: this.#nameList()
    }
  }

  #rules(): { rules: TrailRule[]; verdicts: TrailVerdict[] } {
    const rules: TrailRule[] = []
    const verdicts: TrailVerdict[] = []
    for (let left = this.#short(); left > 0; left--) {
      rules.push(this.#names.ruleOf(this.#short()))
      const flags = this.#short()
      const verdict = {
        exceeded: (flags & isExceededFlag) !== 0,
        remaining: this.#double(),
        resetMs: this.#double()
      }
      if ((flags & hasVerdictFlag) !== 0) verdicts.push(verdict)
    }
    return { rules, verdicts }
  }

  #attempts(beganAt: number): TrailAttempt[] | undefined {
    const attempts: TrailAttempt[] = []
    for (let left = this.#short(); left > 0; left--) {
      const [upstream = '', address = ''] = [this.#name(), this.#name()]
      const attempt = new TrailAttempt(upstream, address)
      attempts.push(
        Object.assign(attempt, {
          purpose: this.#name(),
          part: this.#name(),
          failure: this.#name(),
          reason: this.#name(),
          status: this.#short() || undefined,
          startedAt: beganAt + this.#float(),
          ms: optional(this.#float())
        }) as TrailAttempt
      )
    }
    return attempts.length === 0 ? undefined : attempts
  }

  #texts(): Array<string | undefined> {
    const lengths = Array.from({ length: textCount }, () => this.#short())
    const bytes = this.#short()
    const text = this.#buffer.toString('utf8', this.#at, this.#at + bytes)
    this.#at += bytes
    let end = 0
    return lengths.map(length => {
      if (length === noText) return undefined
      end += length
      return text.slice(end - length, end)
    })
  }

  #double(): number {
    this.#at += 8
    return this.#view.getFloat64(this.#at - 8)
  }

  #float(): number {
    this.#at += 4
    return this.#view.getFloat32(this.#at - 4)
  }

  #short(): number {
    this.#at += 2
    return this.#view.getUint16(this.#at - 2)
  }

  #name(): string | undefined {
    return this.#names.nameOf(this.#short())
  }

  #nameList(): string[] | undefined {
    const names = Array.from({ length: this.#short() }, () => this.#name() ?? '')
    return names.length === 0 ? undefined : names
  }
}
