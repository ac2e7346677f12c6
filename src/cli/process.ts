/** The process of a command: its streams, and its exit code. */
import { adopt } from '../observability/emitters.ts'
import { runCli } from './main.ts'

/** Runs the command of this process. One that serves keeps it alive. */
export async function main(words: readonly string[]): Promise<void> {
  guardOutput()
  const { env, stdout, stderr } = process
  process.exitCode = await runCli(words, {
    env,
    stdout,
    stderr,
    // Opened only by commands that read it.
    get stdin() {
      return process.stdin
    }
  })
}

/** The exit code that shells show for a program ended by SIGPIPE. */
const brokenPipeExit = 141

/**
 * A reader that closes early (`| head`) ends the command silently; other failures, such as a full
 * disk, print one line.
 */
function guardOutput(): void {
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
