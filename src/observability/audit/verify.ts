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
  chains: number
  lines: number
  lost: number
  since?: string
  until?: string
  readonly findings: Finding[]
}

/** The last `mac` of a chain, as it is stored elsewhere, and whether its file was in this folder. */
export interface Head {
  readonly mac: string
  readonly isHere: boolean
}

interface Options {
  /** Files of a ledger, oldest first, or with `isCollected` those of a log that has its lines. */
  readonly files: readonly string[]
  readonly isCollected: boolean
  readonly keys: readonly KeyObject[]
  readonly heads: Readonly<Record<string, Head>>
}

interface Line {
  readonly seq: number
  readonly chain: string
  readonly at: string
  readonly kind: string
  readonly others?: Readonly<Record<string, string>>
  readonly pruned?: readonly string[]
  readonly count?: number
  /** Its bytes before the MAC, which signs them. */
  readonly body: Buffer
  readonly mac: string
}

interface Chain extends Pick<Line, 'seq' | 'mac' | 'kind'> {
  readonly file: string
  readonly isFaulty: boolean
}

const maxFindings = 1000
const maxLineBytes = 1024 * 1024
const ofRedis = 'the head in Redis'
const elsewhere = 'is not here: a replica with another folder wrote it, or it was deleted'
const noEnd = 'has no end: it is still written, or its process crashed'
const changed = 'this line was changed, or one before it is missing or was added'

export class Verification {
  readonly #options: Options
  readonly #chains = new Map<string, Chain>()
  readonly #report: Report = { chains: 0, lines: 0, lost: 0, findings: [] }
  /** By chain, who names which `mac` of it; those that are found are taken out. */
  readonly #named = new Map<string, Map<string, string>>()
  readonly #pruned = new Set<string>()

  constructor(options: Options) {
    this.#options = options
    for (const [chain, { mac }] of Object.entries(options.heads)) this.#name(chain, mac, ofRedis)
  }

  async run(): Promise<Report> {
    const { files, isCollected } = this.#options
    // First lines name the ends of older files, which are then held against them.
    for (const file of isCollected ? files : files.toReversed()) await this.#readAll(file)
    for (const [chain, { file, kind, isFaulty }] of this.#chains) {
      if (!isFaulty && kind !== 'closed') this.#add('note', file, `chain ${chain} ${noEnd}`)
    }
    for (const chain of this.#named.keys()) this.#findMissing(chain)
    this.#report.chains = this.#chains.size
    return this.#report
  }

  async #readAll(path: string): Promise<void> {
    const file = basename(path)
    const { isCollected } = this.#options
    let number = 0
    for await (const bytes of linesOf(path)) {
      number++
      const line = readLine(bytes)
      if (line !== undefined && (isCollected || line.chain === chainOf(file))) {
        const isNext = this.#take(line, file, number)
        if (!isNext && !isCollected) return
      } else if (!isCollected) return this.#add('fault', file, changed, number)
    }
  }

  /** @returns whether it follows the line before */
  #take(line: Line, file: string, number: number): boolean {
    const { seq, chain, at, kind, mac, body, count = 0, others = {}, pruned = [] } = line
    const former = this.#chains.get(chain) ?? { file, seq: 0, mac: '', isFaulty: false }
    if (former.isFaulty) return false
    const isSigned = this.#options.keys.some(key => macOf(key, former.mac, body) === mac)
    const isFaulty = seq !== former.seq + 1 || !isSigned
    this.#chains.set(chain, { file: former.file, seq, mac, kind, isFaulty })
    if (isFaulty) {
      const message = former.seq > 0 ? changed : `${changed}; or another key signed it`
      this.#add('fault', file, message, number)
      return false
    }
    this.#named.get(chain)?.delete(mac)
    for (const [other, end] of Object.entries(others)) this.#name(other, end, file)
    for (const other of pruned) this.#pruned.add(other)
    const report = this.#report
    report.lines++
    if (kind === 'lost') report.lost += count
    if (report.since === undefined || at < report.since) report.since = at
    if (report.until === undefined || at > report.until) report.until = at
    return true
  }

  #findMissing(chain: string): void {
    const [by] = this.#named.get(chain)?.values() ?? []
    const known = this.#chains.get(chain)
    if (by === undefined || known?.isFaulty === true) return
    const file = fileOf(chain)
    if (known !== undefined) return this.#add('fault', file, `its end was cut, as ${by} says`)
    if (this.#pruned.has(chain)) return
    const isElsewhere = by === ofRedis && this.#options.heads[chain]?.isHere !== true
    if (isElsewhere) this.#add('warning', file, elsewhere)
    else this.#add('fault', file, `it was deleted, as ${by} says`)
  }

  #name(chain: string, mac: string, by: string): void {
    // One that was read before began at a time when the clock was ahead.
    if (mac === '' || this.#chains.has(chain)) return
    const macs = this.#named.get(chain) ?? new Map<string, string>()
    this.#named.set(chain, macs.set(mac, by))
  }

  #add(severity: Finding['severity'], file: string, message: string, line?: number): void {
    const { findings } = this.#report
    if (findings.length < maxFindings) findings.push({ severity, file, line, message })
  }
}

function readLine(bytes: Buffer): Line | undefined {
  const parts = split(bytes)
  if (parts === undefined) return undefined
  try {
    const read = JSON.parse(bytes.toString('utf8')) as Line
    const isLine = typeof read.chain === 'string' && typeof read.seq === 'number'
    return isLine ? { ...read, ...parts } : undefined
  } catch {
    return undefined
  }
}

/** Whole lines end at line feeds alone; of one that is too long only the beginning is given. */
async function* linesOf(path: string): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0)
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    let bytes = Buffer.concat([rest, chunk as Buffer])
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a)) {
      yield bytes.subarray(0, end)
      bytes = bytes.subarray(end + 1)
    }
    rest = bytes.length > maxLineBytes ? bytes.subarray(0, maxLineBytes) : bytes
  }
}
