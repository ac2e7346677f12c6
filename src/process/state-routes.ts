import type { FastifyInstance } from 'fastify'
import { LRUCache } from 'lru-cache'
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
import type { Present } from '../services/present.ts'
import type { Reloader } from './reload.ts'
import type { PublicServer } from './server.ts'

export interface Operated {
  readonly server: PublicServer
  readonly reloader: Reloader
  readonly present: Present
  readonly fleet: Fleet
  readonly state: () => GatewayState
}

/** The page of the config asks again every few seconds, and to validate the files takes a while. */
const planFreshMs = 10_000

export function addStateRoutes(ops: FastifyInstance, operated: Operated) {
  const { server, reloader, state, fleet } = operated
  const plan = () => planOf(operated)
  /** By generation. */
  const plans = new LRUCache<number, ReturnType<typeof plan>>({
    max: 1,
    ttl: planFreshMs,
    memoMethod: plan
  })
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
  return { replicas: fleet.list, plan: () => plans.memo(server.generations.current.number) }
}

async function planOf({ server, reloader }: Operated): Promise<PlanAnswer> {
  const { config: before } = server.generations.current
  const read = await reloader.validate()
  if ('faults' in read) {
    return { changes: [], risks: [], faults: read.faults.map(describeFault) }
  }
  return { ...comparePlan(before, read.config), faults: [] }
}
