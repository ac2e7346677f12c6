/** `start`: runs the gateway until a signal ends it. */
import { closeSync, openSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import closeWithGrace from 'close-with-grace'
import { ConfigError } from '../config/schema/faults.ts'
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { type Gateway, startGateway } from '../process/gateway.ts'
import { catchUncaught } from '../process/server/uncaught.ts'
import { createLogger, type Log } from '../services/services.ts'
import { tryConfig } from '../dry-run/try-config.ts'
import type { Command } from './command.ts'

export const start: Command = {
  summary: 'run the gateway (the default)',
  usage: ['[--config DIR]'],
  details: `
SIGTERM stops it after the requests in flight (drain), SIGINT at once; SIGHUP reads
the config again. If it cannot start, or the config has faults, it prints the reason
and ends with exit code 1.

Examples:
  console-gateway start -c /etc/console-gateway
  LISTEN=127.0.0.1:3000 console-gateway`,
  run: async ({ config }) => ((await serve(config)) === undefined ? 1 : 0)
}

/** Time for the end of the process after the drain. */
const endMs = 3000

/**
 * Starts; stops on SIGTERM and SIGINT, reloads on SIGHUP.
 * @returns undefined when it could not start; the reason is on standard error
 */
export async function serve(
  folder: string,
  alsoStop: () => Promise<void> = async () => {}
): Promise<Gateway | undefined> {
  let config: Config
  let gateway: Gateway
  let log: Log
  try {
    const loaded = loadConfig(folder, process.env)
    log = createLogger(loaded.gateway.log)
    const { fault: _, ...plain } = loaded
    const faults = await tryConfig(loaded)
    if (faults.length > 0) throw new ConfigError([...loaded.warnings, ...faults])
    config = plain
    gateway = await startGateway(config, log)
  } catch (error) {
    process.stderr.write(`${error instanceof ConfigError ? error.message : startMessage(error)}\n`)
    return undefined
  }
  // Written now, because a killed process would lose its compile cache.
  flushCompileCache()
  const { drain } = config.gateway
  closeWithGrace(
    {
      skip: ['SIGHUP', 'uncaughtException', 'unhandledRejection'],
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
      // SIGINT comes from a terminal, where no load balancer needs notice.
      await gateway.stop(signal === 'SIGINT' ? { noticeMs: 0 } : {})
      await alsoStop()
    }
  )
  catchUncaught({
    log: () => log,
    onFatal: () => {
      setTimeout(() => process.exit(1), drain.grace + endMs)
      void gateway
        .stop({ noticeMs: 0 })
        .then(alsoStop)
        .finally(() => process.exit(1))
    }
  })
  const atTerminal = process.stdout.isTTY
  process.on('SIGHUP', () => {
    // A closing terminal sends SIGHUP too: without a terminal it means stop, not reload.
    if (atTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM')
    else void gateway.reload('SIGHUP')
  })
  return gateway
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

function startMessage(error: unknown): string {
  const { code, message, address, port } = error as NodeJS.ErrnoException & {
    address?: string
    port?: number
  }
  if (code === 'EADDRINUSE') {
    return (
      `${address}:${port} is in use by another process. ` +
      'Stop that process, or set another server.listen or ops.listen in gateway.yaml.'
    )
  }
  if (code === 'EACCES') {
    return `This user may not listen on ${address}:${port}. Use a port above 1023.`
  }
  return error instanceof Error ? (error.stack ?? message) : String(error)
}
