/** The end of the running gateway: by a signal, or since a new process has replaced this one. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Operators } from './operators.ts'
import type { Operated } from './operated.ts'
import type { GatewayState } from './readiness.ts'
import type { Predecessor } from './restart/predecessor.ts'

interface Options extends Pick<
  Operated,
  'config' | 'publicServer' | 'reloader' | 'ledger' | 'ops' | 'log'
> {
  readonly state: GatewayState
  readonly operators: Pick<Operators, 'hand' | 'close'>
  readonly endWatch: () => void
  /** The process that this one has replaced, if any. */
  readonly predecessor: Pick<Predecessor, 'ended'> | undefined
}

export interface Ending {
  readonly stop: (options?: { readonly noticeMs?: number }) => Promise<void>
  /**
   * Another process has the listeners, and takes all new connections.
   * @param keepsSecretFile whether it needs the file with the generated `ops.secret`
   */
  readonly leave: (keepsSecretFile: boolean) => Promise<void>
  /** Resolves at the end of `leave`. */
  readonly replaced: Promise<void>
}

/** Node closes an idle connection a second after `server.keepAlive`. */
const afterKeepAliveMs = 2000

export function createEnding(options: Options): Ending {
  const { config, state, publicServer, reloader, operators, ledger, ops, log } = options
  const { drain: times, server } = config.gateway
  const { promise: replaced, resolve: onReplaced } = Promise.withResolvers<void>()

  const drain = once(async (lingerMs: number) => {
    options.endWatch()
    if (!(await publicServer.stop(times.grace, lingerMs))) {
      log.warn(`requests were still running after ${times.grace} ms: cut`)
    }
    await reloader.close()
    await operators.close()
    await ledger?.close()
    await ops.close()
    await publicServer.close()
    log.info('stopped')
  })

  return {
    stop: once(async ({ noticeMs = times.notice }: { readonly noticeMs?: number } = {}) => {
      state.isStopping = true
      options.endWatch()
      log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
      await wait(noticeMs)
      await drain(0)
    }),
    // A client may send its next request just before its connection has been idle for too long.
    leave: once(async (keepsSecretFile: boolean) => {
      operators.hand(keepsSecretFile)
      await drain(server.keepAlive + afterKeepAliveMs)
      // It may drain for longer, and its calls reach the state by this process.
      await options.predecessor?.ended
      onReplaced()
    }),
    replaced
  }
}

function once<A extends unknown[], T>(
  work: (...parameters: A) => Promise<T>
): (...parameters: A) => Promise<T> {
  let running: Promise<T> | undefined
  return (...parameters) => (running ??= work(...parameters))
}
