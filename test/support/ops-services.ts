/** Services of operators over a real Redis, without the gateway around them. */
import { loadConfig } from '../../src/config/load/load.ts'
import type { MaintenanceConfig } from '../../src/config/schema/maintenance.ts'
import { Metrics } from '../../src/observability/metrics.ts'
import { createLogger } from '../../src/services/logger.ts'
import { createOpsServices, type OpsServices } from '../../src/services/ops-services.ts'
import { configFolder } from './gateway.ts'
import { until } from './until.ts'

export const secret = 'a secret of at least thirty-two characters'

export interface TestMember extends OpsServices {
  /** What was in force after each change; nothing after an end. */
  readonly inForce: Array<readonly MaintenanceConfig[]>
  readonly log: Array<Record<string, unknown>>
  /** How many messages it has refused, by reason. */
  readonly refused: () => Promise<Record<string, number>>
}

/** @param redis `redis` of gateway.yaml; undefined for a gateway without Redis */
export async function testMember(
  cleanUp: (undo: () => unknown) => void,
  redis: Record<string, unknown> | undefined,
  secrets: readonly string[] = [secret]
): Promise<TestMember> {
  const environment = Object.fromEntries(secrets.map((each, n) => [`SECRET_${n}`, each]))
  const folder = await configFolder({
    gateway: {
      ...(redis !== undefined && { redis }),
      session: { secrets: Object.keys(environment).map(name => `\${${name}}`) }
    }
  })
  const log: Array<Record<string, unknown>> = []
  const write = (line: string) => void log.push(JSON.parse(line) as Record<string, unknown>)
  const inForce: TestMember['inForce'] = []
  const metrics = new Metrics()
  const member = createOpsServices({
    gateway: loadConfig(folder, environment).gateway,
    folder,
    log: createLogger({ level: 'debug', format: 'json' }, { write }),
    metrics,
    version: '1.2.3',
    state: () => ({ generation: 1, ready: true }),
    onMaintenance: async maintenance => void inForce.push(maintenance)
  })
  cleanUp(member.close)
  const refused = async () => {
    const { body } = await metrics.text()
    const lines = body.matchAll(
      /^console_gateway_replica_messages_refused_total\{reason="(\w+)"\} (\d+)/gm
    )
    return Object.fromEntries(Array.from(lines, ([, reason, count]) => [reason, Number(count)]))
  }
  return { ...member, log, inForce, refused }
}

/** Resolves once each of them sees so many replicas. */
export async function inTouch(members: readonly TestMember[], count = members.length) {
  await until(`each sees ${count} replicas and hears them`, async () => {
    for (const { bus } of members) {
      if ((await bus.replicas()).length !== count) return false
      const { replies, problem } = await bus.ask('none', {}, 1000)
      if (problem !== undefined || replies.length !== count) return false
    }
    return true
  })
}
