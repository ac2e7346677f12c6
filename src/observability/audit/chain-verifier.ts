/** Holds the lines of one chain against each other, one after the other. */
import { createHash, type Hash } from 'node:crypto'
import type { ChainReport, Finding, StoredHead } from './chain-report.ts'
import {
  type AuditKey,
  authenticityOf,
  type ChainPosition,
  type ParseLine,
  type ReadLine,
  readLine
} from './line.ts'

const maxFindings = 100

/** Lines of a `pruned` or `recovered` line that the verifier reads. */
interface ControlLine {
  readonly chain?: string
  readonly file?: number
  readonly through?: number
  readonly throughMac?: string
  readonly count?: number
  readonly state?: string
  readonly head?: number
  readonly foundAt?: number
  readonly torn?: { readonly bytes: number; readonly sha256: string }
}

/** Bytes that are no genuine line, since the last genuine one. */
interface Region {
  readonly hash: Hash
  bytes: number
  readonly line: number
  readonly file: string
  readonly message: string
  /** Whether one line break is owed to the hash before further bytes. */
  owesBreak: boolean
}

export interface ChainInput {
  readonly chain: string
  readonly keys: readonly AuditKey[]
  readonly head: StoredHead
  readonly parse: ParseLine
}

export class ChainVerifier {
  readonly #chain: string
  readonly #keys: readonly AuditKey[]
  readonly #head: StoredHead
  readonly #parse: ParseLine
  readonly #findings: Finding[] = []
  #unlisted = 0
  #file = ''
  #lineNumber = 0
  #lines = 0
  /** Undefined before the first line, and after one that cannot be trusted. */
  #expected: ChainPosition | undefined
  #first: ReadLine | undefined
  #firstFile = ''
  #last: ReadLine | undefined
  #fileNumber: number | undefined
  #region: Region | undefined
  #isHeadMet = false
  /** The files that `pruned` lines name as deleted. */
  readonly #pruned: Array<{ readonly through: number; readonly mac: string }> = []

  constructor({ chain, keys, head, parse }: ChainInput) {
    this.#chain = chain
    this.#keys = keys
    this.#head = head
    this.#parse = parse
  }

  beginFile(file: string, number: number): void {
    const missing = this.#fileNumber === undefined ? 0 : number - this.#fileNumber - 1
    this.#file = file
    this.#lineNumber = 0
    if (missing > 0) {
      const first = number - missing
      const which = missing === 1 ? `file ${first} is` : `files ${first} to ${number - 1} are`
      this.#reportFile(`${which} missing before this file of the chain`)
    }
    this.#fileNumber = number
  }

  endFile(): void {
    // A file ends where another begins: what is torn at its end was not recovered in it.
    if (this.#region !== undefined) this.#reportRegion()
  }

  line(bytes: Buffer): void {
    this.#lineNumber++
    const line = readLine(bytes)
    const problem = this.#problemOf(bytes, line)
    if (line === undefined || problem !== undefined) {
      return this.#addToRegion(bytes, problem ?? 'is not a line of the ledger', true)
    }
    this.#lines++
    const control = isControl(line.kind) ? (this.#parse(bytes.toString('utf8')) as ControlLine) : {}
    this.#endRegion(line, control)
    this.#checkOrder(line)
    this.#checkHead(line)
    this.#readControl(line, control)
    this.#first ??= line
    if (this.#first === line) this.#firstFile = this.#file
    this.#last = line
    this.#expected = { seq: line.seq, mac: line.mac }
  }

  fragment(bytes: Buffer, isLast: boolean): void {
    this.#lineNumber++
    const message = isLast
      ? 'the last line is unfinished: a write was cut, and no process has recovered it yet'
      : 'is longer than any line of the ledger'
    this.#addToRegion(bytes, message, false)
  }

  end(): Pick<ChainReport, 'lines' | 'lastSeq' | 'since' | 'until' | 'findings' | 'unlisted'> {
    this.#checkStart()
    this.#checkEnd()
    return {
      lines: this.#lines,
      lastSeq: this.#last?.seq ?? 0,
      since: this.#first?.at,
      until: this.#last?.at,
      findings: this.#findings,
      unlisted: this.#unlisted
    }
  }

  #problemOf(bytes: Buffer, line: ReadLine | undefined): string | undefined {
    if (line === undefined) return undefined
    const authenticity = authenticityOf(bytes, line, this.#keys)
    if (authenticity === 'genuine') return undefined
    return authenticity === 'changed'
      ? `line ${line.seq} was changed: its bytes do not have the signature that it carries`
      : `line ${line.seq} was signed with key ${line.keyId}, which audit.key does not hold`
  }

  #addToRegion(bytes: Buffer, message: string, hasBreak: boolean): void {
    this.#region ??= {
      hash: createHash('sha256'),
      bytes: 0,
      line: this.#lineNumber,
      file: this.#file,
      message,
      owesBreak: false
    }
    const region = this.#region
    if (region.owesBreak) {
      region.hash.update('\n')
      region.bytes++
    }
    region.hash.update(bytes)
    region.bytes += bytes.length
    region.owesBreak = hasBreak
  }

  /** Bytes before a `recovered` line that says just them are what a crash left. */
  #endRegion({ kind }: ReadLine, { torn }: ControlLine): void {
    const region = this.#region
    if (region === undefined) {
      if (kind === 'recovered' && torn !== undefined) {
        this.#report('fault', `${torn.bytes} bytes that a crash had left here were removed`)
      }
      return
    }
    const isKept = kind === 'recovered' && torn !== undefined && isSame(region, torn)
    if (!isKept) return this.#reportRegion()
    this.#region = undefined
    this.#report('note', `${torn.bytes} bytes of a write that a crash cut`, region.line)
  }

  #reportRegion(): void {
    if (this.#region === undefined) return
    const { file, line, message } = this.#region
    this.#region = undefined
    this.#expected = undefined
    this.#add({ severity: 'fault', file, line, message })
  }

  #checkOrder({ seq, prev }: ReadLine): void {
    const expected = this.#expected
    if (expected === undefined) return this.#checkAfterGap(seq)
    const missing = seq - expected.seq - 1
    if (missing > 0) {
      const which =
        missing === 1 ? `line ${seq - 1} is` : `lines ${expected.seq + 1} to ${seq - 1} are`
      this.#report('fault', `${which} missing before line ${seq}`)
    } else if (missing < 0) {
      const message = `line ${seq} stands after line ${expected.seq}: moved, or there twice`
      this.#report('fault', message)
    } else if (prev !== expected.mac) {
      this.#report('fault', `line ${seq} does not follow the line before it: that was replaced`)
    }
  }

  /** After bytes that are no line of ours, only the number can be compared. */
  #checkAfterGap(seq: number): void {
    if (this.#last !== undefined && seq <= this.#last.seq) {
      this.#report(
        'fault',
        `line ${seq} stands after line ${this.#last.seq}: moved, or there twice`
      )
    }
  }

  #checkHead({ seq, mac }: ReadLine): void {
    if (this.#head.from === 'none' || this.#head.position.seq !== seq) return
    this.#isHeadMet = true
    if (mac === this.#head.position.mac) return
    this.#report('fault', `line ${seq} is not the line that the stored head names: it was replaced`)
  }

  #readControl({ kind, seq }: ReadLine, control: ControlLine): void {
    const { through, throughMac } = control
    if (kind === 'pruned' && through !== undefined && throughMac !== undefined) {
      this.#pruned.push({ through, mac: throughMac })
    }
    if (control.chain !== undefined && control.chain !== this.#chain) {
      this.#report('fault', `line ${seq} is of the chain ${control.chain}: files were renamed`)
    }
    if (kind === 'recovered' && control.torn === undefined) {
      this.#report('note', 'the process before did not stop in order: its last entries may miss')
    }
    if (kind === 'lost') this.#report('warning', `${control.count} entries could not be written`)
    if (kind === 'head') this.#reportHeadLine(control)
  }

  #reportHeadLine({ state, head, foundAt }: ControlLine): void {
    if (state === 'cut') {
      const message =
        `when the gateway started here, the ledger ended at line ${foundAt}, and the stored head ` +
        `named line ${head}: lines were cut or changed before`
      return this.#report('fault', message)
    }
    const message =
      `when the gateway started here, the stored head was ${state}: ` +
      'a tail that was cut before does not show'
    this.#report('warning', message)
  }

  #checkStart(): void {
    const first = this.#first
    if (first === undefined || first.seq === 1) return
    const { seq, prev } = first
    const isPruned = this.#pruned.some(({ through, mac }) => {
      return through === seq - 1 ? mac === prev : through >= seq
    })
    const place = { file: this.#firstFile, line: 1 }
    if (isPruned) {
      const message = `lines 1 to ${seq - 1} were pruned, as a line of the ledger says`
      this.#add({ severity: 'note', ...place, message })
    } else {
      const message = `lines 1 to ${seq - 1} are missing, and no line says that they were pruned`
      this.#add({ severity: 'fault', ...place, message })
    }
  }

  #checkEnd(): void {
    const last = this.#last?.seq ?? 0
    if (this.#head.from === 'none') return
    const { seq } = this.#head.position
    if (seq > last) {
      this.#reportFile(
        `the end was cut: the ledger ends at line ${last}, the stored head names line ${seq}`
      )
    } else if (!this.#isHeadMet && seq >= (this.#first?.seq ?? 1)) {
      this.#reportFile(`line ${seq}, which the stored head names, is missing`)
    }
  }

  #report(
    severity: Finding['severity'],
    message: string,
    line: number | undefined = this.#lineNumber
  ): void {
    this.#add({ severity, file: this.#file, line, message })
  }

  #reportFile(message: string): void {
    this.#add({ severity: 'fault', file: this.#file, line: undefined, message })
  }

  #add(finding: Finding): void {
    if (this.#findings.length < maxFindings) this.#findings.push(finding)
    else this.#unlisted++
  }
}

/** The line break after the torn bytes is theirs, or was added before the next line. */
function isSame(
  { hash, bytes }: Region,
  { bytes: stated, sha256 }: { bytes: number; sha256: string }
) {
  if (stated === bytes) return hash.digest('hex') === sha256
  return stated === bytes + 1 && hash.update('\n').digest('hex') === sha256
}

function isControl(kind: string): boolean {
  return ['opened', 'closed', 'recovered', 'pruned', 'lost', 'head'].includes(kind)
}
