/** Finds what was changed in a ledger: lines, ends of chains, whole chains. */
import type { KeyObject } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { chainOf, fileOf, macOf, split } from './line.ts'

export interface Finding {
  /** `warning`: something cannot be shown. */
  readonly severity: 'fault' | 'warning' | 'note'
  readonly file: string
  readonly line?: number | undefined
  readonly message: string
}

export interface Report {
  readonly chains: number
  readonly lines: number
  /** ISO 8601, of the first and the last line. */
  readonly since?: string | undefined
  readonly until?: string | undefined
  /** Entries that could not be written, as the ledger says. */
  readonly lost: number
  readonly findings: readonly Finding[]
}

/** The last `mac` of a chain, as it is stored elsewhere, and whether its file was in this folder. */
export interface Head {
  readonly mac: string
  readonly isHere: boolean
}

interface Options {
  /** Files of a ledger, or with `isCollected` files of a log that has its lines too. */
  readonly files: readonly string[]
  readonly isCollected: boolean
  readonly keys: readonly KeyObject[]
  /** By chain. */
  readonly heads: Readonly<Record<string, Head>>
  readonly parse: (text: string) => unknown
}

/** The members of a line that are read here. */
interface Line {
  readonly seq: number
  readonly chain: string
  readonly at: string
  readonly kind: string
  readonly others?: Readonly<Record<string, string>>
  readonly pruned?: readonly string[]
  readonly count?: number
}

/** A chain as far as it was read. */
interface Chain {
  readonly file: string
  readonly seq: number
  readonly mac: string
  readonly kind: string
  readonly isFaulty: boolean
}

type Parts = NonNullable<ReturnType<typeof split>>

const maxFindings = 1000
const maxLineBytes = 1024 * 1024
const ofRedis = 'the head in Redis'
const elsewhere = 'is not here: a replica with another folder wrote it, or it was deleted'
const changed = 'this line was changed, or one before it is missing or was added'

/** @throws what the file system throws */
export async function verifyLedger(options: Options): Promise<Report> {
  return await new Verification(options).run()
}

class Verification {
  readonly #options: Options
  readonly #chains = new Map<string, Chain>()
  readonly #findings: Finding[] = []
  /** By chain, who names which `mac` of it; those that are found are taken out. */
  readonly #named = new Map<string, Map<string, string>>()
  readonly #pruned = new Set<string>()
  #lines = 0
  #lost = 0
  #since: string | undefined
  #until: string | undefined

  constructor(options: Options) {
    this.#options = options
    for (const [chain, { mac }] of Object.entries(options.heads)) this.#name(chain, mac, ofRedis)
  }

  async run(): Promise<Report> {
    const { files, isCollected } = this.#options
    // First lines name other files and their ends, which the files are then held against.
    if (!isCollected) for (const file of files) await this.#readFirst(file)
    for (const file of files) await this.#readAll(file)
    for (const [chain, { file, kind, isFaulty }] of this.#chains) {
      if (isFaulty || kind === 'closed') continue
      this.#add(
        'note',
        file,
        `chain ${chain} has no end: it is still written, or its process crashed`
      )
    }
    this.#findMissing()
    return {
      chains: this.#chains.size,
      lines: this.#lines,
      since: this.#since,
      until: this.#until,
      lost: this.#lost,
      findings: this.#findings
    }
  }

  async #readFirst(file: string): Promise<void> {
    for await (const { line } of linesOf(file)) {
      const parts = split(line)
      if (parts === undefined || !this.#isSigned(parts, '')) return
      const { others = {}, pruned = [] } = this.#read(line) ?? {}
      for (const [chain, mac] of Object.entries(others)) this.#name(chain, mac, basename(file))
      for (const chain of pruned) this.#pruned.add(chain)
      return
    }
  }

  async #readAll(path: string): Promise<void> {
    const file = basename(path)
    const { isCollected } = this.#options
    let number = 0
    for await (const { line, isWhole } of linesOf(path)) {
      number++
      const parts = split(line)
      const read = parts && this.#read(line)
      const isOfLedger = read !== undefined && (isCollected || read.chain === chainOf(file))
      if (parts !== undefined && isOfLedger) {
        const isNext = this.#take(read, parts, { file, number })
        if (!isNext && !isCollected) return
      } else if (!isCollected) {
        if (isWhole) return this.#add('fault', file, changed, number)
        return this.#add('note', file, 'its last line is not whole: its process crashed')
      }
    }
  }

  /** @returns whether it follows the line before */
  #take(
    { seq, chain, at, kind, count = 0 }: Line,
    parts: Parts,
    { file, number }: { readonly file: string; readonly number: number }
  ): boolean {
    const former = this.#chains.get(chain) ?? { file, seq: 0, mac: '', kind: '', isFaulty: false }
    if (former.isFaulty) return false
    const isFaulty = seq !== former.seq + 1 || !this.#isSigned(parts, former.mac)
    this.#chains.set(chain, { file: former.file, seq, mac: parts.mac, kind, isFaulty })
    if (isFaulty) {
      this.#add(
        'fault',
        file,
        former.seq > 0 ? changed : `${changed}; or another key signed it`,
        number
      )
      return false
    }
    this.#named.get(chain)?.delete(parts.mac)
    this.#lines++
    if (kind === 'lost') this.#lost += count
    if (this.#since === undefined || at < this.#since) this.#since = at
    if (this.#until === undefined || at > this.#until) this.#until = at
    return true
  }

  #findMissing(): void {
    for (const [chain, macs] of this.#named) {
      const [by] = macs.values()
      const known = this.#chains.get(chain)
      if (by === undefined || known?.isFaulty === true) continue
      if (known === undefined && this.#pruned.has(chain)) continue
      const isElsewhere = by === ofRedis && this.#options.heads[chain]?.isHere !== true
      if (known !== undefined) this.#add('fault', fileOf(chain), `its end was cut, as ${by} says`)
      else if (!isElsewhere) this.#add('fault', fileOf(chain), `it was deleted, as ${by} says`)
      else this.#add('warning', fileOf(chain), elsewhere)
    }
  }

  #isSigned({ body, mac }: Parts, before: string): boolean {
    return this.#options.keys.some(key => macOf(key, before, body) === mac)
  }

  #name(chain: string, mac: string, by: string): void {
    if (mac === '') return
    const macs = this.#named.get(chain) ?? new Map<string, string>()
    this.#named.set(chain, macs.set(mac, by))
  }

  /** Undefined for what is no line of a ledger. */
  #read(line: Buffer): Line | undefined {
    try {
      const read = this.#options.parse(line.toString('utf8')) as Line
      return typeof read.chain === 'string' && typeof read.seq === 'number' ? read : undefined
    } catch {
      return undefined
    }
  }

  #add(severity: Finding['severity'], file: string, message: string, line?: number): void {
    if (this.#findings.length < maxFindings) this.#findings.push({ severity, file, line, message })
  }
}

/** Lines end at line feeds alone; of one that is too long only the beginning is given. */
async function* linesOf(
  path: string
): AsyncGenerator<{ readonly line: Buffer; readonly isWhole: boolean }> {
  let rest = Buffer.alloc(0)
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    let bytes = Buffer.concat([rest, chunk as Buffer])
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a)) {
      yield { line: bytes.subarray(0, end), isWhole: true }
      bytes = bytes.subarray(end + 1)
    }
    rest = bytes.length > maxLineBytes ? bytes.subarray(0, maxLineBytes) : bytes
  }
  if (rest.length > 0) yield { line: rest, isWhole: false }
}
