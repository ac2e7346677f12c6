/** Shows what is closed, and begins and ends maintenance for a time. */
import type { FastifyInstance } from 'fastify'
import type { BoundedClosing } from '../config/schema/maintenance.ts'
import { malformed } from '../app/hooks/validation.ts'
import type { Desk } from './desk.ts'
import { secretOperator } from './operator.ts'
import { addAct, addRead } from './routes.ts'
import {
  maintenanceAnswer,
  type MaintenanceBody,
  maintenanceBody,
  maintenanceEndBody,
  type ShownMaintenance
} from './schemas.ts'

const hint =
  'Give the end: {"until": "2026-12-01T06:00:00Z"}, and as needed "from", "routes", "methods", ' +
  '"allowRoles" and "message" (at most 500 characters).'
const inThisProcess =
  'No Redis is configured: this maintenance is in force in this process alone, and ends with it.'

export function addMaintenanceRoutes(ops: FastifyInstance, desk: Desk) {
  const { maintenance: record, config, log } = desk
  const info = record.isShared ? {} : { info: inThisProcess }
  const show = (): ShownMaintenance => ({
    shared: record.isShared,
    ...info,
    file: config().routes.maintenance ?? null,
    operators: record
      .entries()
      .map(({ maintenance, author, since }) => ({ ...maintenance, author, since }))
  })

  addRead(ops, {
    path: '/maintenance',
    summary: 'What is closed for maintenance, by routes.yaml and by operators.',
    answer: maintenanceAnswer,
    read: show
  })
  addAct(ops, {
    path: '/maintenance',
    kind: 'maintenance.begin',
    summary: 'Closes routes until a time, at all replicas, beside what operators closed before.',
    hint,
    body: maintenanceBody,
    answer: maintenanceAnswer,
    run: async (body, { operator = secretOperator }) => {
      const maintenance = readMaintenance(body, desk)
      await record.begin(maintenance, operator.name)
      const { from, until, routes, methods } = maintenance
      log.warn(
        { event: 'maintenance.begun', by: operator.name, from, until, routes, methods },
        'an operator closed routes for maintenance'
      )
      return show()
    }
  })
  addAct(ops, {
    path: '/maintenance/end',
    kind: 'maintenance.end',
    summary: 'Opens what operators closed, or some routes of it; routes.yaml stays in force.',
    body: maintenanceEndBody,
    answer: maintenanceAnswer,
    run: async ({ routes = [] }, { operator = secretOperator }) => {
      await record.end(routes)
      log.warn(
        { event: 'maintenance.ended', by: operator.name, routes },
        'an operator ended maintenance'
      )
      return show()
    }
  })
  return { show, routes: () => [...Object.keys(config().routes.routes), 'login'] }
}

/** @throws GatewayError for a route that config does not have */
function readMaintenance(body: MaintenanceBody, { config }: Desk): BoundedClosing {
  const { routes } = config().routes
  const unknown = (body.routes ?? []).find(
    route => route !== 'login' && !Object.hasOwn(routes, route)
  )
  if (unknown !== undefined) throw malformed(`routes.yaml has no route "${unknown}".`)()
  return { routes: [], methods: [], allowRoles: [], ...body }
}
