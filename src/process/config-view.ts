/** The config of the running gateway for operators: what runs, and what the files hold. */
import { comparePlan } from '../config/risks.ts'
import { writtenDiff } from '../config/written-diff.ts'
import { describeFault } from '../config/schema/faults.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { ConfigFiles, Contracts, PlanAnswer } from '../ops/state-schemas.ts'
import type { Reloader } from './reload.ts'
import type { PublicServer } from './server.ts'

interface Options {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly state: () => GatewayState
}

/** Of deviations. */
const kinds = {
  missing: 'is missing',
  retyped: 'has another type',
  invalid: 'has a value that the schema does not allow',
  new: 'is new'
}

export function createConfigView(options: Options) {
  return {
    config: () => options.state().config,
    files: () => filesOf(options),
    plan: () => planOf(options),
    contracts: () => contractsOf(options)
  }
}

async function filesOf({ server, reloader }: Options): Promise<ConfigFiles> {
  const { config: before } = server.generations.current
  const read = await reloader.validate()
  const none = { reload: [], restart: [], risks: [], files: [], faults: [] }
  if ('faults' in read) {
    return { ...none, state: 'faulty', faults: read.faults.map(describeFault) }
  }
  const { changes, risks } = comparePlan(before, read.config)
  const inWords = (afterRestart: boolean) =>
    changes.filter(({ restart }) => restart === afterRestart).map(({ text }) => text)
  return {
    ...none,
    state: changes.length === 0 ? 'same' : 'different',
    reload: inWords(false),
    restart: inWords(true),
    risks,
    files: writtenDiff(before.written, read.config.written)
  }
}

async function planOf({ server, reloader }: Options): Promise<PlanAnswer> {
  const files = await reloader.validate()
  if ('faults' in files) return { faults: files.faults.map(describeFault) }
  return comparePlan(server.generations.current.config, files.config)
}

function contractsOf({ server: { generations, services } }: Options): Contracts {
  const drifts = new Map(services.drift.list().map(drift => [drift.route, drift]))
  const all = Object.entries(generations.current.config.routes.routes).flatMap(
    ([route, { contract }]) => {
      if (contract === undefined) return []
      const { checked = 0, broken = 0, deviations = [] } = drifts.get(route) ?? {}
      const drift = new Set(deviations.map(({ path, kind }) => `${path} ${kinds[kind]}`))
      return [{ route, mode: contract.mode, checked, broken, drift: [...drift] }]
    }
  )
  return { contracts: all }
}
