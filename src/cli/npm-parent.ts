/**
 * npm runs a script in a shell, and passes SIGTERM to that shell only: it ends, and the gateway would
 * go on as an orphan that holds its ports. So a gateway that is npm's script ends with its shell.
 */
import { parse } from 'node:path'

const everyMs = 1000

/**
 * Whether npm's script names this program. One that another program has started in between, such as
 * a shell that was opened by npm, is none: it may outlive who started it.
 */
export function isNpmScript(): boolean {
  const { name } = parse(process.argv[1] ?? '')
  return process.env['npm_lifecycle_script']?.includes(name) === true
}

/**
 * Signals SIGTERM to this process once its parent has ended. A parent that has ended before, as that
 * of `nohup console-gateway start &`, is not waited for.
 * @returns undoes it
 */
export function endWithParent(): () => void {
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, everyMs).unref()
  return () => clearInterval(timer)
}
