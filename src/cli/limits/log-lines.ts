/** The lines of a log: a file or standard input, plain, gzip or zstd. */
import { createReadStream, statSync } from 'node:fs'
import { Readable, type Transform } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { adopt, pipe } from '../../observability/emitters.ts'
import { CommandError } from '../command.ts'

/** A longer line is cut: it is not a line of a log. */
const maxLine = 1024 * 1024

/**
 * @param file `-` is standard input
 * @param onBytes gets the number of bytes read, compressed
 * @throws CommandError when the file cannot be read to its end
 */
export async function* logLines(
  file: string,
  stdin: Readable,
  onBytes: (count: number) => void
): AsyncGenerator<readonly string[]> {
  const source = file === '-' ? stdin : adopt(createReadStream(file, { highWaterMark: 512 * 1024 }))
  try {
    let rest = ''
    const decoder = new TextDecoder()
    for await (const chunk of await unpacked(source, onBytes)) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      // Bounded: of a line without end only the start is kept.
      if (rest.length > maxLine) rest = rest.slice(0, 100)
      yield lines
    }
    if (rest !== '') yield [rest]
  } catch (error) {
    throw new CommandError(
      `${file === '-' ? 'Standard input' : file} cannot be read: ${error instanceof Error ? error.message : String(error)}`
    )
  }
}

/** The size of a file; undefined for standard input and for what is not a file. */
export function lengthOf(file: string): number | undefined {
  const stats = file === '-' ? undefined : statSync(file, { throwIfNoEntry: false })
  return stats?.isFile() === true ? stats.size : undefined
}

/** Unpacks by the first bytes, whatever the file's name. */
async function unpacked(
  source: Readable,
  onBytes: (count: number) => void
): Promise<AsyncIterable<unknown>> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const first = await chunks.next()
  async function* all() {
    for (let next = first; next.done !== true; next = await chunks.next()) {
      onBytes(next.value.length)
      yield next.value
    }
  }
  if (first.done === true) return all()
  const start = first.value.subarray(0, 4).toString('hex')
  if (start.startsWith('1f8b')) return unpackedBy(adopt(createGunzip()), all())
  return start === '28b52ffd' ? unpackedBy(adopt(createZstdDecompress()), all()) : all()
}

function unpackedBy(unpack: Transform, chunks: AsyncGenerator<Buffer>): AsyncIterable<unknown> {
  return pipe(adopt(Readable.from(chunks)), unpack)
}
