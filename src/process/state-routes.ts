/** The gateway's present, its config and its replicas for operators, who may reload the config. */
import type { FastifyInstance } from 'fastify'
import { comparePlan } from '../config/risks.ts'
import { describeFault } from '../config/schema/faults.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import { statusOf } from '../ops/health.ts'
import { addAct, addRead } from '../ops/routes.ts'
import {
  type PlanAnswer,
  planAnswer,
  reloadAnswer,
  reloadBody,
  replicasAnswer,
  statusAnswer
} from '../ops/state-schemas.ts'
import type { Fleet } from '../services/fleet.ts'
import type { Present, ReplicaState } from '../services/present.ts'
import type { Generations } from './generation.ts'
import type { Reloader } from './reload.ts'
import type { PublicServer } from './server.ts'

/** The parts of the gateway that operators see and act on. */
export interface Operated {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly present: Present
  readonly fleet: Fleet<ReplicaState>
  readonly state: () => GatewayState
}

/** The page of the config asks again every few seconds, and to validate the files takes a while. */
const planFreshMs = 10_000

export function addStateRoutes(ops: FastifyInstance, operated: Operated) {
  const { server, reloader, state, fleet } = operated
  const plan = () => planOf(operated)
  addRead(ops, {
    path: '/status',
    summary: 'What runs: version, config, state.',
    answer: statusAnswer,
    read: () => statusOf(state())
  })
  addRead(ops, {
    path: '/replicas',
    summary: 'All replicas: host, version, config, faults.',
    answer: replicasAnswer,
    read: fleet.list
  })
  addRead(ops, {
    path: '/plan',
    summary: 'Where the files differ from what runs, and what they would change.',
    answer: planAnswer,
    read: plan
  })
  addAct(ops, {
    path: '/reload',
    kind: 'config.reload',
    summary: 'Reads the config files and runs their config.',
    body: reloadBody,
    answer: reloadAnswer,
    run: async ({ yes }, { operator }) =>
      await reloader.reload('operator', { yes: yes === true, operator })
  })
  return { replicas: fleet.list, plan: shared(server.generations, plan) }
}

/** All who ask within some seconds share what was read once, unless another generation runs. */
function shared<T>(generations: Generations, read: () => Promise<T>): () => Promise<T> {
  let readAt = -Infinity
  let readOf = 0
  let last: Promise<T>
  return () => {
    const { number } = generations.current
    if (performance.now() - readAt >= planFreshMs || readOf !== number) {
      readAt = performance.now()
      readOf = number
      last = read()
    }
    return last
  }
}

async function planOf({ server, reloader }: Operated): Promise<PlanAnswer> {
  const { config: before } = server.generations.current
  const read = await reloader.validate()
  if ('faults' in read) {
    return { changes: [], risks: [], faults: read.faults.map(describeFault) }
  }
  return { ...comparePlan(before, read.config), faults: [] }
}
