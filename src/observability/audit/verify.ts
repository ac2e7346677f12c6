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

interface Options {
  /** Files of a ledger, or with `isCollected` files of a log that has its lines too. */
  readonly files: readonly string[]
  readonly isCollected: boolean
  readonly keys: readonly KeyObject[]
  /** By chain its last `mac`, as it is stored elsewhere, and whether its file was in this folder. */
  readonly heads: Readonly<Record<string, Head>>
  readonly parse: (text: string) => unknown
}

export interface Head {
  readonly mac: string
  readonly isHere: boolean
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

interface Chain {
  readonly file: string
  seq: number
  mac: string
  kind: string
  isFaulty: boolean
}

const ofRedis = 'the head in Redis'
const elsewhere = 'is not here: a replica with another folder wrote it, or it was deleted'
const changed = 'this line was changed, or one before it is missing or was added'

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
    for (const [chain, { mac }] of Object.entries(options.heads)) {
      this.#name(chain, mac, ofRedis)
    }
  }

  async run(): Promise<Report> {
    const { files, isCollected } = this.#options
    // First lines name other files and their ends, which the files are then held against.
    if (!isCollected) for (const file of files) await this.#readFirst(file)
    for (const file of files) await this.#readAll(file)
    for (const [chain, { file, kind, isFaulty }] of this.#chains) {
      if (!isFaulty && kind !== 'closed') {
        this.#add(
          'note',
          file,
          `chain ${chain} has no end: it is still written, or its process crashed`
        )
      }
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
    for await (const { line, isWhole } of linesOf(file)) {
      const parts = split(line)
      if (!isWhole || parts === undefined || this.#keyOf(parts, '') === undefined) return
      const { others = {}, pruned = [] } = this.#parse(line)
      for (const [chain, mac] of Object.entries(others)) this.#name(chain, mac, basename(file))
      for (const chain of pruned) this.#pruned.add(chain)
      return
    }
  }

  async #readAll(path: string): Promise<void> {
    const file = basename(path)
    const { isCollected } = this.#options
    const ofFile = isCollected ? undefined : chainOf(file)
    let number = 0
    for await (const { line, isWhole } of linesOf(path)) {
      number++
      const parts = split(line)
      if (parts === undefined) {
        if (isCollected) continue
        if (isWhole) return this.#fault(file, number, changed)
        return this.#add('note', file, 'its last line is not whole: its process crashed')
      }
      const read = this.#read(line)
      if (read === undefined || (ofFile !== undefined && read.chain !== ofFile)) {
        if (isCollected) continue
        return this.#fault(file, number, changed)
      }
      if (!this.#take(read, parts, { file, number }) && !isCollected) return
    }
  }

  /** @returns whether it follows the line before */
  #take(
    { seq, chain: name, at, kind, count = 0 }: Line,
    parts: { readonly body: Buffer; readonly mac: string },
    { file, number }: { readonly file: string; readonly number: number }
  ): boolean {
    const chain = this.#chains.get(name) ?? { file, seq: 0, mac: '', kind: '', isFaulty: false }
    this.#chains.set(name, chain)
    if (chain.isFaulty) return false
    if (seq !== chain.seq + 1 || this.#keyOf(parts, chain.mac) === undefined) {
      chain.isFaulty = true
      const isSigned = chain.seq > 0 || this.#options.keys.length === 0
      this.#fault(file, number, isSigned ? changed : `${changed}; or another key signed it`)
      return false
    }
    Object.assign(chain, { seq, mac: parts.mac, kind })
    this.#named.get(name)?.delete(parts.mac)
    this.#lines++
    if (kind === 'lost') this.#lost += count
    if (this.#since === undefined || at < this.#since) this.#since = at
    if (this.#until === undefined || at > this.#until) this.#until = at
    return true
  }

  #findMissing(): void {
    for (const [chain, macs] of this.#named) {
      const by = [...macs.values()][0]
      const known = this.#chains.get(chain)
      if (by === undefined || known?.isFaulty === true) continue
      if (known === undefined && this.#pruned.has(chain)) continue
      const isElsewhere = by === ofRedis && this.#options.heads[chain]?.isHere !== true
      if (known !== undefined) this.#add('fault', fileOf(chain), `its end was cut, as ${by} says`)
      else if (!isElsewhere) this.#add('fault', fileOf(chain), `it was deleted, as ${by} says`)
      else this.#add('warning', fileOf(chain), elsewhere)
    }
  }

  #keyOf({ body, mac }: { readonly body: Buffer; readonly mac: string }, before: string) {
    return this.#options.keys.find(key => macOf(key, before, body) === mac)
  }

  #name(chain: string, mac: string, by: string): void {
    if (mac === '') return
    const macs = this.#named.get(chain) ?? new Map<string, string>()
    this.#named.set(chain, macs.set(mac, by))
  }

  #parse(line: Buffer): Line {
    return this.#options.parse(line.toString('utf8')) as Line
  }

  #read(line: Buffer): Line | undefined {
    try {
      const read = this.#parse(line)
      return typeof read.chain === 'string' && typeof read.seq === 'number' ? read : undefined
    } catch {
      return undefined
    }
  }

  #fault(file: string, line: number, message: string): void {
    this.#add('fault', file, message, line)
  }

  #add(severity: Finding['severity'], file: string, message: string, line?: number): void {
    this.#findings.push({ severity, file, line, message })
  }
}

/** @throws what the file system throws */
export async function verifyLedger(options: Options): Promise<Report> {
  return await new Verification(options).run()
}

/** Lines end at line feeds alone. */
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
    rest = bytes
  }
  if (rest.length > 0) yield { line: rest, isWhole: false }
}
