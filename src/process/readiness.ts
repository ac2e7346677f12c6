/** Whether the running gateway is ready, with the state of config, ledger and maintenance. */
import type { Dependencies, Dependency } from '../admin/dependencies.ts'
import type { Readiness } from '../admin/server.ts'
import type { AuditLedger, LedgerStatus } from '../observability/audit/ledger.ts'
import { maintenanceInWords, type MaintenanceConfig } from '../config/schema/maintenance.ts'
import type { MaintenanceEntry } from '../services/maintenance-entries.ts'
import type { Reloader } from './reload/reload.ts'

export interface GatewayState {
  isListening: boolean
  isStopping: boolean
  /** That of operators, while it is in force. */
  maintenance: () => readonly MaintenanceEntry[]
  /** Undefined where config has no audit ledger. */
  readonly ledger: Pick<AuditLedger, 'status'> | undefined
}

export function stateAtStart(ledger: GatewayState['ledger']): GatewayState {
  return { isListening: false, isStopping: false, maintenance: () => [], ledger }
}

const iso = (ms: number) => new Date(ms).toISOString()

const isAhead = (until: string | undefined) => until === undefined || Date.parse(until) > Date.now()

export function readinessOf(
  { ready, parts, ...others }: Readiness,
  reloader: Reloader,
  { isListening, isStopping, ledger, maintenance }: GatewayState
): Readiness {
  const { maintenance: byFile } = reloader.current().config.routes
  const closed = [
    ...(byFile !== undefined && isAhead(byFile.until) ? [maintenanceOfFile(byFile)] : []),
    ...maintenance().map(maintenanceOfOperator)
  ]
  const status = ledger?.status()
  return {
    ...others,
    config: configHealth(reloader),
    ...(status !== undefined && { audit: auditHealth(status) }),
    maintenance: closed,
    ready: ready && isListening && !isStopping,
    parts: {
      ...(!isListening && { gateway: 'starting' }),
      ...(isStopping && { gateway: 'stopping' }),
      ...configPart(reloader),
      ...(status !== undefined && auditPart(status)),
      ...(closed.length > 0 && {
        maintenance: closed.map(({ name, detail }) => `${name} ${detail}`).join('; ')
      }),
      ...parts
    }
  }
}

/**
 * Information only: with a refused config a replica stays ready, since it runs the last good one.
 */
function configPart(reloader: Reloader): { readonly config?: string } {
  const files = reloader.files()
  if (files.state === 'running') return {}
  const { number } = reloader.current()
  const [fault = ''] = files.faults
  return {
    config: `generation ${number} runs; the files were refused at ${files.since}: ${fault}`
  }
}

type Health = Pick<Dependency, 'state' | 'since' | 'detail'>

function configHealth(reloader: Reloader): Health {
  const files = reloader.files()
  if (files.state === 'running') return { state: 'up' }
  return { state: 'degraded', since: files.since, detail: 'the files were refused' }
}

/** Information only: a ledger that cannot be written stops no traffic. */
function auditPart({ failing, lost, waiting }: LedgerStatus): { readonly audit?: string } {
  if (failing === undefined) return {}
  return {
    audit:
      `cannot be written since ${iso(failing.since)} (${failing.reason}): ` +
      `${waiting} entries wait, ${lost} lost`
  }
}

function auditHealth({ failing, headFailing, lost, waiting }: LedgerStatus): Health {
  if (failing !== undefined) {
    const detail = `cannot be written (${failing.reason}): ${waiting} entries wait, ${lost} lost`
    return { state: 'degraded', since: iso(failing.since), detail }
  }
  if (headFailing === undefined) return { state: 'up' }
  return { state: 'degraded', detail: `its head cannot be stored: ${headFailing}` }
}

type Closed = NonNullable<Dependencies['maintenance']>[number]

function maintenanceOfFile(maintenance: MaintenanceConfig): Closed {
  return { name: 'routes.yaml', detail: maintenanceInWords(maintenance) }
}

function maintenanceOfOperator({ maintenance, author, since }: MaintenanceEntry): Closed {
  return { name: author, since, detail: maintenanceInWords(maintenance) }
}
