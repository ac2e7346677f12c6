/** The output of commands: for people, for programs, and to files. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { styleText } from 'node:util'
import { escapeInJson, printableLines } from '../observability/unprintable.ts'
import type { Io, Output } from './command.ts'
import { cannotWrite, replaceFile } from './replace-file.ts'

/**
 * @param file standard output without it
 * @throws CommandError when the file cannot be written
 */
export function writeOutput(file: unknown, text: string, { stdout }: Io): void {
  if (typeof file !== 'string') return void stdout.write(text)
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
export function printText(text: string, { stdout }: Io): void {
  stdout.write(`${printableLines(text)}\n`)
}

/** JSON for programs, and for terminals that would obey what clients put into names and paths. */
export function jsonText(value: unknown): string {
  return `${escapeInJson(JSON.stringify(value, null, 2))}\n`
}

/**
 * Colours of a terminal; none if the output goes elsewhere or NO_COLOR is set.
 * @param stream where the text goes
 */
export function paint(
  style: Parameters<typeof styleText>[0],
  text: string,
  stream: Output
): string {
  return styleText(style, text, { stream })
}
