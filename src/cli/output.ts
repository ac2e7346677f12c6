/** The output of commands: to files, and to pipes that may close. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { adopt } from '../observability/emitters.ts'
import { escapeInJson, printableLines } from '../observability/unprintable.ts'
import { cannotWrite, replaceFile } from './replace-file.ts'

/** The exit code that shells show for a program ended by SIGPIPE. */
const brokenPipeExit = 141

/**
 * A reader that closes early (`| head`) ends the command silently; other failures, such as a full
 * disk, print one line. Call it once, before any output.
 */
export function guardOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    adopt(stream, error => {
      const { code = 'unknown reason' } = error as NodeJS.ErrnoException
      if (code === 'EPIPE') process.exit(brokenPipeExit)
      if (stream === process.stdout) {
        process.stderr.write(`The output could not be written (${code}).\n`)
      }
      process.exit(1)
    })
  }
}

/**
 * @param file standard output without it
 * @throws CommandError when the file cannot be written
 */
export function writeOutput(file: unknown, text: string): void {
  if (typeof file !== 'string') return void process.stdout.write(text)
  try {
    // A pipe or a device takes text, but it must not be replaced.
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) {
      return writeFileSync(file, text)
    }
  } catch (error) {
    throw cannotWrite(file, error)
  }
  try {
    replaceFile(file, text)
  } catch (error) {
    if (!isBoundToPlace(error) || !existsSync(file)) throw error
    writeInPlace(file, text)
  }
}

/** A mount of its own, or a file in a folder of somebody else: it takes text all the same. */
function isBoundToPlace(error: unknown): boolean {
  const { cause } = error as { readonly cause?: NodeJS.ErrnoException }
  return ['EACCES', 'EBUSY', 'ENAMETOOLONG', 'EPERM', 'EROFS'].includes(cause?.code ?? '')
}

function writeInPlace(file: string, text: string): void {
  try {
    writeFileSync(file, text)
  } catch (error) {
    throw cannotWrite(file, error)
  }
}

/** Text for people; nothing in it that clients or back-ends chose reaches the terminal raw. */
export function printText(text: string): void {
  process.stdout.write(`${printableLines(text)}\n`)
}

/** JSON for programs, and for terminals that would obey what clients put into names and paths. */
export function jsonText(value: unknown): string {
  return `${escapeInJson(JSON.stringify(value, null, 2))}\n`
}
