/** Gateways that share a Redis, each a process of its own that can be replaced by another version or config. */
import {
  type GatewayProcess,
  opsSecret,
  startGatewayProcess
} from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'

export interface Version {
  readonly checkout: string
  readonly folder: string
  readonly environment?: Readonly<Record<string, string>>
}

export interface Replica {
  /** What runs at the moment; between two there is none. */
  readonly current: () => GatewayProcess | undefined
  /** Ends what runs as an orchestrator does, and starts another in its place. */
  readonly replace: (version: Version) => Promise<void>
}

export async function startReplica(
  cleanUp: (undo: () => unknown) => void,
  version: Version
): Promise<Replica> {
  let current: GatewayProcess | undefined
  const start = async ({ checkout, folder, environment = {} }: Version) => {
    const started = await startGatewayProcess(cleanUp, {
      checkout,
      folder,
      environment: { OPS_SECRET: opsSecret, ...environment }
    })
    await until('ready', async () => (await started.ask('/readyz')).status === 200)
    current = started
  }
  await start(version)
  return {
    current: () => current,
    replace: async next => {
      const old = current
      current = undefined
      await old?.stop()
      await start(next)
    }
  }
}
