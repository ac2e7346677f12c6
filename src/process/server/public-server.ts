/**
 * The public server of this process: its services, its listener, and the generation that takes
 * requests.
 */
import type { Config } from '../../config/schema/config.ts'
import { createGeneration, type Generation } from './generation.ts'
import { Generations } from './generations.ts'
import { tuneV8 } from './v8-tuning.ts'
import type { Ledger } from '../../observability/audit/ledger.ts'
import { BoundStreams } from '../../app/bound-streams.ts'
import { createShedLog } from '../../app/shed-log.ts'
import { createListeners } from './listeners.ts'
import { Present } from './present.ts'
import { createSeal } from '../../session/seal.ts'
import { Maintenance } from '../../services/maintenance.ts'
import { createServices, type Log } from '../../services/services.ts'

export type PublicServer = ReturnType<typeof createPublicServer>

/** Of a stop's time: within it streams are told to end, in the rest they may do so. */
const drainShare = 0.8

export function createPublicServer(config: Config, log: Log, ledger: Ledger | undefined) {
  tuneV8()
  const services = createServices(config, log, ledger)
  const maintenance = new Maintenance({
    ...services.background,
    seal: createSeal(services.secrets, 'maintenance'),
    now: services.sessions.wallNow,
    log
  })
  const streams = new BoundStreams({
    sessions: services.sessions,
    metrics: services.metrics,
    maintenance,
    onError: err => log.error({ err }, 'a stream could not be held against its session')
  })
  const shed = createShedLog(services.metrics, log)
  const generations = new Generations(log)
  const present = new Present(services)
  const listeners = createListeners(config, generations.handle, services, shed)

  return {
    generations,
    /** Builds a generation, which takes no requests yet. @throws when it cannot be built */
    create: (number: number, next: Config): Promise<Generation> =>
      createGeneration(number, next, services, {
        boundStreams: streams,
        maintenance,
        ledger,
        shed
      }),
    /** From now on this generation takes the requests. */
    activate: (generation: Generation): void => {
      listeners.activate(generation.config)
      generations.activate(generation)
      streams.activate(generation.config)
      if (services.fileUsers.activate(generation.config)) {
        services.sessions.forgetReviews()
        services.operatorSessions?.forgetReviews()
      }
    },
    services,
    maintenance,
    present,
    /** @returns the address for the console, with the real port. @throws when it cannot listen */
    listen: listeners.listen,
    leave: listeners.leave,
    /**
     * Takes no more connections, and lets requests in flight finish within the time.
     * @returns whether all finished
     */
    stop: async (graceMs: number): Promise<boolean> => {
      streams.drain(graceMs * drainShare)
      return await listeners.stop(graceMs)
    },
    /** Releases the services, once all generations are closed. */
    close: async (): Promise<void> => {
      present.close()
      shed.write()
      streams.close()
      await services.close()
    }
  }
}
