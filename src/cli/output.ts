/** The output of commands: to files, and to pipes that may close. */
import { writeFileSync } from 'node:fs'
import { adopt } from '../observability/emitters.ts'
import { escapeInJson } from '../observability/unprintable.ts'
import { CommandError } from './command.ts'

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
    writeFileSync(file, text)
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    const advice = code === 'ENOENT' ? ' Does its folder exist?' : ''
    throw new CommandError(`${file} cannot be written (${code}).${advice}`)
  }
}

/** JSON for programs, and for terminals that would obey what clients put into names and paths. */
export function jsonText(value: unknown): string {
  return `${escapeInJson(JSON.stringify(value, null, 2))}\n`
}
