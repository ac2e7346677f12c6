import { flushCompileCache } from 'node:module'
import { parse } from 'node:path'
import { isatty } from 'node:tty'
import { inspect } from 'node:util'
import closeWithGrace from 'close-with-grace'
import { readLastGood } from '../config/last-good.ts'
import type { Folders } from '../config/read/files.ts'
import { createInputs } from '../config/read/inputs.ts'
import { loadConfig } from '../config/read/load.ts'
import type { Config } from '../config/schema/config.ts'
import { ConfigError } from '../config/schema/faults.ts'
import { assertUsable } from '../dry-run/try-config.ts'
import { printableLines } from '../observability/unprintable.ts'
import { type Gateway, startGateway } from '../process/gateway.ts'
import { createLogger, type Log } from '../services/services.ts'
import { type Invocation, UsageError } from './command.ts'

interface Options {
  readonly state?: string
  readonly lastGood?: boolean
}

const endMs = 3000

export async function start({ configs, values }: Invocation<Options>) {
  if (values.lastGood === true && values.state === undefined) {
    throw new UsageError('--last-good goes with --state.')
  }
  return { code: (await serve(configs, values)) === undefined ? 1 : 0 }
}

export async function serve(folders: Folders, { state, lastGood = false }: Options = {}) {
  const started = Promise.withResolvers<Gateway>()
  reloadOnHangUp(started.promise)
  const leaveNpm = endWithNpm()
  let config: Config
  let gateway: Gateway
  let log: Log
  try {
    const { refused, ...usable } = await usableConfig(folders, lastGood ? state : undefined)
    config = usable.config
    log = createLogger(config.gateway.log)
    gateway = await startGateway(config, log, process.env, { state, refused })
  } catch (error) {
    process.stderr.write(`${printableLines(startMessage(error) ?? inspect(error))}\n`)
    return undefined
  }
  // Written now, because a killed process would lose its compile cache.
  flushCompileCache()
  const { drain } = config.gateway
  const cutOff = (reason: string) => {
    log.warn(`${reason}: requests that still run are cut off`)
    log.flush()
  }
  // Of an error that nothing caught: the state of the process is unknown then.
  const uncaught = (err: unknown) => {
    log.fatal({ event: 'process.uncaught', err }, 'internal error: the process ends')
    log.flush()
  }
  closeWithGrace(
    {
      skip: ['SIGHUP'],
      delay: drain.notice + drain.grace + endMs,
      logger: {
        error: problem => log.error({ err: problem }, 'the process failed to end cleanly')
      },
      // The sender of a second signal does not want to wait.
      onSecondSignal: signal => cutOff(`a second ${signal}`),
      onSecondError: uncaught,
      onTimeout: delay => cutOff(`not drained within ${delay} ms`)
    },
    async ({ signal, err }) => {
      if (err !== undefined) uncaught(err)
      // After Ctrl+C the shell ends too: that is no second signal.
      leaveNpm()
      // SIGINT comes from a terminal, where no load balancer needs notice.
      const isAtOnce = signal === 'SIGINT' || err !== undefined
      await gateway.stop(isAtOnce ? { noticeMs: 0 } : {})
    }
  )
  started.resolve(gateway)
  return gateway
}

/** @param state has one that is taken if the files are refused. @throws ConfigError */
async function usableConfig(folders: Folders, state: string | undefined) {
  try {
    return { config: await readConfig(folders) }
  } catch (error) {
    const lastGood = state === undefined ? undefined : readLastGood(state)
    if (lastGood === undefined || !(error instanceof ConfigError)) throw error
    const config = await readConfig(folders, lastGood.texts)
    return { config, refused: { faults: error.faults, lastGoodOf: lastGood.at } }
  }
}

async function readConfig(folders: Folders, texts?: ReadonlyMap<string, string>): Promise<Config> {
  const loaded = loadConfig(folders, process.env, { inputs: createInputs(texts) })
  await assertUsable(loaded)
  const { fault: _, ...config } = loaded
  return config
}

/** At once, and obeyed once it serves: a signal without a handler would end the process. */
function reloadOnHangUp(started: Promise<Gateway>): void {
  const atTerminal = process.stdout.isTTY
  process.on('SIGHUP', () => {
    // A closing terminal sends SIGHUP too: without a terminal it means stop, not reload.
    if (atTerminal && !isatty(1)) process.kill(process.pid, 'SIGTERM')
    else void started.then(gateway => gateway.reload('SIGHUP'))
  })
}

const problems: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use by another process',
  EADDRNOTAVAIL: 'is no address of this machine',
  ENOTFOUND: 'is a name without an address',
  EACCES: 'may not be listened on by this user, as ports up to 1023'
}

type Place = Readonly<Partial<Record<'address' | 'port' | 'hostname', string>>>

function startMessage(error: unknown): string | undefined {
  if (error instanceof ConfigError) return error.message
  const { code = '', address, port, hostname } = error as NodeJS.ErrnoException & Place
  const problem = problems[code]
  const place = hostname ?? `${address}:${port}`
  return problem && `${place} ${problem}: see server.listen and ops.listen in gateway.yaml.`
}

/**
 * npm runs a script in a shell, and passes SIGTERM to that shell only: the gateway has to end with it.
 * @returns undoes it
 */
function endWithNpm(): () => void {
  const { name } = parse(process.argv[1] ?? '')
  // A program that a shell of npm started, and no script, may outlive npm.
  if (process.env['npm_lifecycle_script']?.includes(name) !== true) return () => {}
  const parent = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, 1000).unref()
  return () => clearInterval(timer)
}
