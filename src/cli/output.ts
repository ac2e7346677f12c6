/** The output of commands: to files, and to pipes that may close. */
import { writeFileSync } from 'node:fs'
import { adopt } from '../observability/emitters.ts'
import { CommandError } from './command.ts'

/** Exit code of a program that SIGPIPE ends, as shells say it. */
const brokenPipeExit = 141

/**
 * A reader that has seen enough (`| head`) ends the command without a word; a full disk is said in one line.
 * Call it once, before anything is written.
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
 * @param file where the text goes; standard output without it
 * @throws CommandError where the file cannot be written
 */
export function writeOutput(file: unknown, text: string): void {
  if (typeof file !== 'string') return void process.stdout.write(text)
  try {
    writeFileSync(file, text)
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    const advice = code === 'ENOENT' ? ' Is its folder there?' : ''
    throw new CommandError(`${file} cannot be written (${code}).${advice}`)
  }
}
