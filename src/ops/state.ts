/** The gateway's present, its config and its replicas; an operator may reload the config. */
import type { FastifyInstance } from 'fastify'
import type { Operator } from './operator.ts'
import { addAct, addOpsScope, addRead } from './routes.ts'
import { reloadBody } from './schemas.ts'
import {
  configAnswer,
  type ConfigFiles,
  type ConfigNow,
  type Contracts,
  contractsAnswer,
  filesAnswer,
  type Now,
  nowAnswer,
  type PlanAnswer,
  planAnswer,
  type ReloadAnswer,
  reloadAnswer,
  replicasAnswer,
  type ReplicasStatus,
  type Status,
  statusAnswer
} from './state-schemas.ts'

export interface StateReads {
  readonly now: () => Promise<Now>
  readonly status: () => Status
  readonly replicas: () => Promise<ReplicasStatus>
  readonly config: () => ConfigNow
  readonly files: () => Promise<ConfigFiles>
  readonly contracts: () => Contracts
  readonly plan: () => Promise<PlanAnswer>
  /** @param yes whether the operator accepts that most sessions of file users end */
  readonly reload: (yes: boolean, operator: Operator | undefined) => Promise<ReloadAnswer>
}

export function addStateRoutes(ops: FastifyInstance, options: StateReads): void {
  addOpsScope(ops, scope => {
    addRead(scope, {
      path: '/now',
      summary: 'Requests, upstreams, process, Redis and replicas at present.',
      answer: nowAnswer,
      read: options.now
    })
    addRead(scope, {
      path: '/status',
      summary: 'What runs: version, config, state.',
      answer: statusAnswer,
      read: options.status
    })
    addRead(scope, {
      path: '/replicas',
      summary: 'All replicas: host, version, config, faults.',
      answer: replicasAnswer,
      read: options.replicas
    })
    addConfigRoutes(scope, options)
  })
}

function addConfigRoutes(scope: FastifyInstance, options: StateReads): void {
  const { config, files, contracts, plan, reload } = options
  addRead(scope, {
    path: '/config',
    summary: 'The running config: since when, and what changed.',
    answer: configAnswer,
    read: config
  })
  addRead(scope, {
    path: '/config/files',
    summary: 'Where the files differ from what runs.',
    answer: filesAnswer,
    read: files
  })
  addRead(scope, {
    path: '/config/contracts',
    summary: 'The contracts of routes, and how responses differ from them.',
    answer: contractsAnswer,
    read: contracts
  })
  addRead(scope, {
    path: '/plan',
    summary: 'What the files would change.',
    answer: planAnswer,
    read: plan
  })
  addAct(scope, {
    path: '/reload',
    kind: 'config.reload',
    summary: 'Reads the config files and runs their config.',
    body: reloadBody,
    answer: reloadAnswer,
    run: async ({ yes }, { operator }) => await reload(yes === true, operator)
  })
}
