/** One chain of the ledger in the only process that writes it: lines, files, rotation, pruning. */
import { type FileHandle, open, rename, stat, unlink } from 'node:fs/promises'
import { chainFilePath, chainsIn, lockChain, newChainId } from './chain-files.ts'
import { type AuditEntry, membersOf } from './entry.ts'
import { makeFolder } from './folder.ts'
import { type AuditKey, type ChainPosition, formatLine } from './line.ts'
import { setOldAside } from './old-files.ts'
import { findMac, lastLineOf, readTail, type Tail } from './tail.ts'

export interface ChainOptions {
  readonly folder: string
  /** Newest first: it signs. */
  readonly keys: readonly [AuditKey, ...AuditKey[]]
  readonly maxFileBytes: number
  readonly maxFileMs: number
  /** Files that were closed longer ago are deleted; 0: none. */
  readonly keepMs: number
  readonly now: () => number
}

/** Lines about the ledger itself. */
type ControlKind = 'opened' | 'closed' | 'recovered' | 'stopped' | 'pruned' | 'lost' | 'head'

interface Opened {
  readonly chain: string
  readonly release: () => void
  readonly file: FileHandle
  readonly number: number
  readonly size: number
  /** Undefined for a file without lines. */
  readonly tail: Tail
  /** When the file began, in ms since 1970. */
  readonly since: number
}

const start: ChainPosition = { seq: 0, mac: '' }
const mode = 0o600

export class Chain {
  readonly id: string
  readonly #options: ChainOptions
  readonly #release: () => void
  #file: FileHandle | undefined
  #number: number
  #size: number
  #since: number
  #position: ChainPosition
  #pending: Buffer[] = []
  /** Lines whose bytes are all in the file, since the last call of `takeWritten`. */
  #unreported: string[] = []
  /** The end of the chain, and of its file, when this process took it. */
  readonly opened: ChainPosition
  readonly #openedFile: Pick<Opened, 'file' | 'size'>

  private constructor(options: ChainOptions, opened: Opened, former: ChainPosition) {
    const { chain, release, file, number, size, tail, since } = opened
    this.id = chain
    this.#options = options
    this.#release = release
    this.#file = file
    this.#number = number
    this.#size = size
    this.#since = since
    this.#position = tail.last === undefined ? former : { seq: tail.last.seq, mac: tail.last.mac }
    this.opened = this.#position
    this.#openedFile = { file, size }
    if (tail.isOpenEnded) this.#push('\n')
  }

  /** Takes the first chain of the folder that no process writes, or begins one. @throws */
  static async open(options: ChainOptions): Promise<Chain> {
    const { folder, now } = options
    makeFolder(folder)
    const { chain, release } = takeChain(folder)
    try {
      const opened = await openLastFile(options, chain, release)
      const former = opened.tail.last === undefined ? await endOfFormer(options, opened) : start
      const self = new Chain(options, opened, former)
      if (isClosed(opened.tail)) await self.#openNext(now())
      else self.#addFirst(opened)
      return self
    } catch (error) {
      release()
      throw error
    }
  }

  get position(): ChainPosition {
    return this.#position
  }

  get hasPending(): boolean {
    return this.#pending.length > 0
  }

  /** @returns the number of the line */
  add(entry: AuditEntry): number {
    return this.#format(entry.at ?? this.#options.now(), entry.kind, membersOf(entry))
  }

  addControl(kind: ControlKind, members: Readonly<Record<string, unknown>>): number {
    return this.#format(this.#options.now(), kind, members)
  }

  /**
   * Writes all lines that were added. After a failure, a second call goes on where it stopped.
   * @returns whether a file was full or old, and the next one has begun
   */
  async write(): Promise<boolean> {
    const { maxFileBytes, maxFileMs, now } = this.#options
    await this.#writePending()
    if (this.#size < maxFileBytes && now() - this.#since < maxFileMs) return false
    if (this.#file === undefined) return false
    await this.#rotate()
    return true
  }

  async sync(): Promise<void> {
    await this.#file?.datasync()
  }

  /**
   * Goes on in a new file where the current one was deleted or replaced: what is written to it
   * would be lost.
   * @returns whether that was so
   */
  async leaveDeletedFile(): Promise<boolean> {
    if (this.#file === undefined) return false
    const { ino } = await this.#file.stat()
    const path = chainFilePath(this.#options.folder, this.id, this.#number)
    const inPlace = await stat(path).catch(() => undefined)
    if (inPlace?.ino === ino) return false
    await this.#openNext(this.#options.now())
    return true
  }

  /** The lines that were written since the last call, without their line breaks. */
  takeWritten(): string[] {
    const written = this.#unreported
    this.#unreported = []
    return written
  }

  /** The `mac` of a line that was there when this process took the chain; undefined if too old. */
  async openedMacOf(seq: number): Promise<string | undefined> {
    if (seq === this.opened.seq) return this.opened.mac
    const { file, size } = this.#openedFile
    return file === this.#file ? await findMac(file, size, seq) : undefined
  }

  async close(): Promise<void> {
    this.#release()
    await this.#file?.close()
    this.#file = undefined
  }

  #format(at: number, kind: string, members: Readonly<Record<string, unknown>>): number {
    const { text, mac } = formatLine(this.#position, this.#options.keys[0], { at, kind, members })
    this.#position = { seq: this.#position.seq + 1, mac }
    this.#push(`${text}\n`)
    this.#unreported.push(text)
    return this.#position.seq
  }

  #push(text: string): void {
    this.#pending.push(Buffer.from(text))
  }

  #addFirst({ tail: { last, torn } }: Opened): void {
    const place = { chain: this.id, file: this.#number }
    const isWhole = torn === undefined && (last === undefined || last.kind === 'stopped')
    if (isWhole) this.addControl('opened', place)
    else this.addControl('recovered', { ...place, ...(torn !== undefined && { torn }) })
  }

  async #writePending(): Promise<void> {
    if (this.#pending.length === 0) return
    this.#file ??= await this.#createFile()
    let bytes = this.#pending.length === 1 ? this.#pending[0] : Buffer.concat(this.#pending)
    this.#pending = []
    while (bytes !== undefined && bytes.length > 0) {
      try {
        const { bytesWritten } = await this.#file.write(bytes)
        this.#size += bytesWritten
        bytes = bytes.subarray(bytesWritten)
      } catch (error) {
        this.#pending.unshift(bytes)
        throw error
      }
    }
  }

  async #rotate(): Promise<void> {
    this.addControl('closed', { chain: this.id, file: this.#number, next: this.#number + 1 })
    await this.#writePending()
    await this.sync()
    await this.#openNext(this.#options.now())
    await this.#writePending()
  }

  /** The file itself is created with its first line: the disk may be full. */
  async #openNext(now: number): Promise<void> {
    const former = this.#file
    this.#file = undefined
    this.#number += 1
    this.#size = 0
    this.#since = now
    this.addControl('opened', { chain: this.id, file: this.#number })
    await former?.close()
  }

  async #createFile(): Promise<FileHandle> {
    return await open(chainFilePath(this.#options.folder, this.id, this.#number), 'ax', mode)
  }

  /**
   * Deletes files that are older than `keepMs`, once a line says up to which line.
   * @returns why the oldest of them cannot be deleted
   * @throws when the line cannot be written
   */
  async prune(): Promise<unknown> {
    if (this.#options.keepMs === 0) return undefined
    const { paths, last, file, problem } = await setOldAside(this.#options, this.id, this.#number)
    if (last === undefined) return problem
    this.addControl('pruned', { chain: this.id, file, through: last.seq, throughMac: last.mac })
    await this.#writePending()
    await this.sync()
    try {
      for (const path of paths) await unlink(path)
      return problem
    } catch (error) {
      return error
    }
  }
}

function takeChain(folder: string): { readonly chain: string; readonly release: () => void } {
  for (const chain of [...chainsIn(folder).keys(), newChainId()]) {
    const release = lockChain(folder, chain)
    if (release !== undefined) return { chain, release }
  }
  throw new Error('another process took the new chain of the audit ledger')
}

async function openLastFile(
  { folder, keys, now }: ChainOptions,
  chain: string,
  release: () => void
): Promise<Opened> {
  const last = chainsIn(folder).get(chain)?.at(-1)
  const number = last?.number ?? 1
  const path = chainFilePath(folder, chain, number)
  // A process that was about to delete the whole chain ended before.
  if (last !== undefined && last.path !== path) await rename(last.path, path)
  const file = await open(path, 'a+', mode)
  try {
    const { size, birthtimeMs } = await file.stat()
    const tail = await readTail(file, size, keys)
    const since = Math.min(birthtimeMs > 0 ? birthtimeMs : now(), now())
    return { chain, release, file, number, size, tail, since }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** What a crash left in or behind the last line is put right in its own file. */
function isClosed({ last, torn, isOpenEnded }: Tail): boolean {
  return last?.kind === 'closed' && torn === undefined && !isOpenEnded
}

/** A file without a whole line begins at the end of the file before it. */
async function endOfFormer(
  { folder, keys }: ChainOptions,
  { chain, number }: Opened
): Promise<ChainPosition> {
  const former = chainsIn(folder)
    .get(chain)
    ?.find(each => each.number === number - 1)
  if (former === undefined) return start
  const last = await lastLineOf(former.path, keys)
  return last === undefined ? start : { seq: last.seq, mac: last.mac }
}
