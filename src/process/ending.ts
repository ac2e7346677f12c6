/** The end of the running gateway. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Operators } from './operators.ts'
import type { Operated } from './operated.ts'
import type { Life } from './state.ts'

interface Options extends Pick<
  Operated,
  'config' | 'publicServer' | 'reloader' | 'ledger' | 'fleet' | 'log'
> {
  readonly life: Life
  readonly operators: Pick<Operators, 'close'>
  readonly endWatch: () => void
}

/** @returns a function whose further calls wait for the same end */
export function createStop(
  options: Options
): (options?: { readonly noticeMs?: number }) => Promise<void> {
  const { config, life, publicServer, reloader, operators, ledger, fleet, log } = options
  const { drain: times } = config.gateway
  let stopping: Promise<void> | undefined

  async function stop(noticeMs: number): Promise<void> {
    life.phase = 'stopping'
    options.endWatch()
    // Kept connections go elsewhere, or wait for the next process, before this one ends.
    if (noticeMs > 0) publicServer.leave()
    log.info(`stopping: not ready; taking requests for ${noticeMs} ms more`)
    await wait(noticeMs)
    if (!(await publicServer.stop(times.grace))) {
      log.warn(`requests were still running after ${times.grace} ms: cut`)
    }
    await reloader.close()
    await operators.close()
    await ledger?.close()
    await fleet.close()
    await publicServer.close()
    log.info('stopped')
  }

  return ({ noticeMs = times.notice } = {}) => (stopping ??= stop(noticeMs))
}
