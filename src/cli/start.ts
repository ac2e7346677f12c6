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
SIGTERM stops it once requests in flight are over (drain), SIGINT at once; SIGHUP
reads the config again. Until it listens, and where the config has faults, it ends
with 1 and says why.

Examples:
  console-gateway start -c /etc/console-gateway
  LISTEN=127.0.0.1:3000 console-gateway`,
  run: async ({ config }) => ((await serve(config)) === undefined ? 1 : 0)
}

/** What is left after the drain has so long. */
const endMs = 3000

/** Starts; stops on SIGTERM and SIGINT, reloads on SIGHUP. Says on standard error why it could not, and returns undefined then. */
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
  // A process that is killed keeps nothing of what it has compiled.
  flushCompileCache()
  const { drain } = config.gateway
  // Somebody at a terminal does not wait for load balancers.
  closeWithGrace(
    {
      skip: ['SIGHUP', 'uncaughtException', 'unhandledRejection'],
      delay: drain.notice + drain.grace + endMs,
      logger: {
        error: problem => log.error({ err: problem }, 'the process does not end as it should')
      },
      // A second signal: whoever sends it does not want to wait.
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
    // A terminal that was closed says the same as an operator who wants a reload.
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
    return `${address}:${port} is in use by another process. Stop that, or set another server.listen or ops.listen in gateway.yaml.`
  }
  if (code === 'EACCES') {
    return `${address}:${port} may not be listened on by this user. Use a port above 1023.`
  }
  return error instanceof Error ? (error.stack ?? message) : String(error)
}
