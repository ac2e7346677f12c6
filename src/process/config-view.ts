/** The config of the running gateway for operators: what runs, and what the files hold. */
import type { ConfigFiles, ConfigNow, Contracts, Expectations } from '../admin/config-data.ts'
import { configHashes } from '../config/load/config-hash.ts'
import { comparePlan } from '../config/load/plan.ts'
import { writtenDiff } from '../config/load/written-diff.ts'
import { describeFault } from '../config/schema/faults.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Reloader } from './reload.ts'
import type { PublicServer } from './server.ts'

interface Options {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly state: () => GatewayState
}

/** The response time-out of a load balancer that `plan` takes without another one. */
const balancerMs = 60_000

/** Of deviations. */
const kinds = {
  missing: 'is missing',
  retyped: 'has another type',
  invalid: 'has a value that the schema does not allow',
  new: 'is new'
}

export function createConfigView(options: Options) {
  return {
    current: () => currentOf(options),
    files: () => filesOf(options),
    expectations: () => expectationsOf(options),
    contracts: () => contractsOf(options)
  }
}

function currentOf({ server, reloader, state }: Options): ConfigNow {
  const { folder, generation, hash, files, restartNeeded, taken } = state().config
  return {
    folder,
    generation,
    hash,
    installHash: configHashes(server.generations.current.config).install,
    takenAt: taken.at,
    by: taken.by,
    changes: [...taken.changes],
    files: {
      state: files.state,
      ...(files.state === 'refused' && { since: files.since, faults: [...files.faults] }),
      places: reloader.state.faults.map(({ file, line, path, message }) => ({
        file,
        line,
        path,
        message
      }))
    },
    restartNeeded: [...restartNeeded]
  }
}

async function filesOf({ server, reloader }: Options): Promise<ConfigFiles> {
  const { config: before } = server.generations.current
  const read = await reloader.validate()
  const none = { reload: [], restart: [], risks: [], files: [], faults: [] }
  if ('faults' in read) {
    return { ...none, state: 'faulty', faults: read.faults.map(describeFault) }
  }
  const { changes, risks } = comparePlan(before, read.config, balancerMs)
  const inWords = (afterRestart: boolean) =>
    changes.filter(({ restart }) => restart === afterRestart).map(({ text }) => text)
  return {
    ...none,
    state: changes.length === 0 ? 'same' : 'different',
    reload: inWords(false),
    restart: inWords(true),
    risks: [...risks],
    files: writtenDiff(before.written, read.config.written)
  }
}

/** Those of the running config are met, or it would not run. */
function expectationsOf({ server, reloader }: Options): Expectations {
  const faults = reloader.state.faults.filter(({ path }) => path.startsWith('expect.'))
  const isOf = (name: string, path: string) => `${path}.`.startsWith(`expect.${name}.`)
  const { expect } = server.generations.current.config.routes
  const listed = Object.entries(expect).map(([name, { request, status, code, upstream }]) => {
    const outcome = [status, code, upstream && `upstream ${upstream}`].filter(
      each => each !== undefined
    )
    const messages = faults.filter(({ path }) => isOf(name, path)).map(({ message }) => message)
    return {
      name,
      text: `${name}: ${request} → ${outcome.join(', ')}`,
      isMet: messages.length === 0,
      ...(messages.length > 0 && { message: messages.join('; ') })
    }
  })
  const added = faults
    .filter(({ path }) => !listed.some(({ name }) => isOf(name, path)))
    .map(({ path, message }) => ({ name: path, text: path, isMet: false, message }))
  return { expectations: [...listed, ...added] }
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
