/** `start`: runs the gateway until a signal ends it. */
import { closeSync, openSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import closeWithGrace from 'close-with-grace'
import { ConfigError } from '../config/schema/faults.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { type Gateway, startGateway } from '../process/gateway.ts'
import { createPidFile, type PidFile } from '../process/restart/pid-file.ts'
import { findPredecessor, TakeOverError } from '../process/restart/predecessor.ts'
import { catchUncaught } from '../process/server/uncaught.ts'
import { createLogger, type Log } from '../services/services.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { printableLines } from '../observability/unprintable.ts'
import { CommandError, type Invocation } from './command.ts'
import { endWithParent, isNpmScript } from './npm-parent.ts'
import { programOf } from './program.ts'

export async function start({ config, values }: Invocation): Promise<number> {
  const pidFile = values['pid-file'] as string | undefined
  return (await serve(config, { pidFile })) === undefined ? 1 : 0
}

/** Time for the end of the process after the drain. */
const endMs = 3000

interface Serving {
  /** Gets the id of this process. */
  readonly pidFile?: string | undefined
  /** Called at the end. */
  readonly alsoStop?: () => Promise<void>
  /** Why it cannot be restarted, and what to do instead. */
  readonly refusal?: string
}

/**
 * Starts; stops on SIGTERM and SIGINT, reloads on SIGHUP, restarts on SIGUSR2. What comes before
 * it serves is obeyed then, but for a stop, which ends it at once.
 * @returns undefined when it could not start; the reason is on standard error
 */
export async function serve(
  folder: string,
  { pidFile, alsoStop, refusal }: Serving = {}
): Promise<Gateway | undefined> {
  const started = Promise.withResolvers<Gateway>()
  obeySignals(started.promise)
  const predecessor = findPredecessor()
  // The parent of a successor is its predecessor, which ends.
  const leaveParent = predecessor === undefined && isNpmScript() ? endWithParent() : () => {}
  const program = programOf({ pidFile, refusal, isSuccessor: predecessor !== undefined })
  const writtenPid = pidFile === undefined ? undefined : createPidFile(pidFile)
  const endAlso = async () => {
    writtenPid?.remove()
    await alsoStop?.()
  }
  let config: Config
  let gateway: Gateway
  let log: Log
  try {
    const loaded = loadConfig(folder, process.env)
    log = createLogger(loaded.gateway.log)
    const { fault: _, ...plain } = loaded
    await assertUsable(loaded)
    config = plain
    writing(writtenPid?.prepare)
    gateway = await startGateway(config, log, process.env, {
      program,
      predecessor,
      onKept: () => writeAgain(writtenPid, log)
    })
    await publishPid(writtenPid, gateway)
  } catch (error) {
    writtenPid?.remove()
    const reason = startMessage(error, predecessor !== undefined)
    process.stderr.write(`${printableLines(reason ?? stackOf(error))}\n`)
    // Operators get it in a response, so without a stack.
    await predecessor?.fail(reason ?? (error as Error).message)
    return undefined
  }
  // Written now, because a killed process would lose its compile cache.
  flushCompileCache()
  const { drain } = config.gateway
  closeWithGrace(
    {
      skip: ['SIGHUP', 'SIGUSR2', 'uncaughtException', 'unhandledRejection'],
      delay: drain.notice + drain.grace + endMs,
      logger: {
        error: problem => log.error({ err: problem }, 'the process failed to end cleanly')
      },
      // The sender of a second signal does not want to wait.
      onSecondSignal: signal => {
        log.warn(`a second ${signal}: requests that still run are cut off`)
        log.flush()
      },
      onTimeout: delay => {
        log.warn(`not drained within ${delay} ms: requests that still run are cut off`)
        log.flush()
      }
    },
    async ({ signal }) => {
      // After Ctrl+C the shell ends too: that is no second signal.
      leaveParent()
      // SIGINT comes from a terminal, where no load balancer needs notice.
      await gateway.stop(signal === 'SIGINT' ? { noticeMs: 0 } : {})
      await endAlso()
    }
  )
  void gateway.replaced.then(endAlso).finally(() => process.exit())
  catchUncaught({
    log: () => log,
    onFatal: () => {
      setTimeout(() => process.exit(1), drain.grace + endMs)
      void gateway
        .stop({ noticeMs: 0 })
        .then(endAlso)
        .finally(() => process.exit(1))
    }
  })
  // With handlers for all signals: the predecessor ends after it.
  await predecessor?.ready()
  started.resolve(gateway)
  return gateway
}

/** From before the PID file is there: a signal without a handler would end the process. */
function obeySignals(started: Promise<Gateway>): void {
  const atTerminal = process.stdout.isTTY
  const reload = (gateway: Gateway) => {
    if (!passOn('SIGHUP', gateway.successor())) void gateway.reload('SIGHUP')
  }
  process.on('SIGHUP', () => {
    // A closing terminal sends SIGHUP too: without a terminal it means stop, not reload.
    if (atTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM')
    else void started.then(reload)
  })
  process.on('SIGUSR2', () => void started.then(gateway => gateway.restart()))
}

/** A service manager would follow nobody, so the gateway does not run without the file. */
async function publishPid(pidFile: PidFile | undefined, gateway: Gateway): Promise<void> {
  try {
    writing(pidFile?.publish)
  } catch (error) {
    await gateway.stop({ noticeMs: 0 })
    throw error
  }
}

/** A new process may have written its id before it failed. */
function writeAgain(pidFile: PidFile | undefined, log: Log): void {
  try {
    pidFile?.prepare()
    pidFile?.publish()
  } catch (err) {
    log.error({ err }, 'the PID file cannot be written')
  }
}

function writing(step: (() => void) | undefined): void {
  try {
    step?.()
  } catch (error) {
    throw new CommandError(`--pid-file cannot be written: ${(error as Error).message}`)
  }
}

/** A service manager signals the process that it started, until that has ended. */
function passOn(signal: NodeJS.Signals, successor: number | undefined): boolean {
  try {
    return successor !== undefined && process.kill(successor, signal)
  } catch {
    return false
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

function isForPeople(error: unknown): error is Error {
  return [ConfigError, TakeOverError, CommandError].some(kind => error instanceof kind)
}

const overlapAdvice =
  ' If it is the running gateway, since its address overlaps with the new one, ' +
  'stop and start it for this change.'

/** @returns undefined for an error that no operator can mend */
function startMessage(error: unknown, isSuccessor: boolean): string | undefined {
  if (isForPeople(error)) return error.message
  const { code, address, port, hostname } = error as NodeJS.ErrnoException & {
    address?: string
    port?: number
    hostname?: string
  }
  if (code === 'EADDRINUSE') {
    return (
      `${address}:${port} is in use by another process. ` +
      'Stop that process, or set another server.listen or ops.listen in gateway.yaml.' +
      (isSuccessor ? overlapAdvice : '')
    )
  }
  if (code === 'EADDRNOTAVAIL') {
    return (
      `${address}:${port} is no address of this machine. ` +
      'Set server.listen and ops.listen in gateway.yaml to one of its own, or to 0.0.0.0.'
    )
  }
  if (code === 'ENOTFOUND' && hostname !== undefined) {
    return (
      `The name ${hostname} has no address. ` +
      'Set server.listen and ops.listen in gateway.yaml to an IP address of this machine.'
    )
  }
  if (code === 'EACCES') {
    return `This user may not listen on ${address}:${port}. Use a port above 1023.`
  }
  return undefined
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
