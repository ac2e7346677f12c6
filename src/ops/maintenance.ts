import { malformed } from '../errors/errors.ts'
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { type Closing, timePattern } from '../services/maintenance.ts'
import { secretOperator } from './operator.ts'
import { addRoute, type Desk } from './routes.ts'
import { list, maxNameLength, name, object, optional, text, time } from './schemas.ts'

export type ShownMaintenance = Static<typeof answer>

const maxListed = 2000
const written = (description: string) => text(description, { pattern: timePattern })
const routeNames = (description: string) =>
  optional(Type.Array(text('', { maxLength: maxNameLength }), { maxItems: maxListed, description }))

const beginBody = object(
  {
    from: optional(written('The beginning; at once without it.')),
    until: written('The end, such as 2026-12-01T06:00Z.'),
    routes: routeNames('The routes to close; all without it. `login` closes sign-in.'),
    methods: optional(
      Type.Array(Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']), {
        maxItems: 5,
        description: 'The methods to close; all without it.'
      })
    ),
    allowRoles: optional(Type.Array(name('Its users can continue to work.'), { maxItems: 100 })),
    message: optional(text('The message for users.', { minLength: 1, maxLength: 500 }))
  },
  // A misspelt `routes` would close them all.
  { additionalProperties: false }
)

const closing = Type.Unsafe<Closing>(object(beginBody.properties))
const answer = object({
  info: optional(text('Why it is not in force at all replicas, within a second.')),
  operators: list(Type.Intersect([closing, object({ author: text(), since: time })]))
})

const inThisProcess =
  'No Redis is configured: this maintenance is in force in this process alone, and ends with it.'

export function addMaintenanceRoutes(ops: FastifyInstance, desk: Desk): void {
  const { maintenance: record } = desk
  addRoute(ops, '/maintenance', 'What is closed for maintenance, and by whom.', {
    answer,
    run: () => maintenanceOf(desk)
  })
  addRoute(ops, '/maintenance', 'Closes routes until a time, beside what is closed.', {
    kind: 'maintenance.begin',
    takes: beginBody,
    answer,
    run: async (body, { operator: { name: by } = secretOperator }) => {
      await record.begin(readMaintenance(body, desk), by)
      return maintenanceOf(desk)
    }
  })
  addRoute(ops, '/maintenance/end', 'Opens what operators closed, or some routes of it.', {
    kind: 'maintenance.end',
    takes: object({
      routes: routeNames('The routes to open; all that operators closed without it.')
    }),
    answer,
    run: async ({ routes = [] }) => {
      await record.end(routes)
      return maintenanceOf(desk)
    }
  })
}

export function maintenanceOf({ maintenance: record }: Desk): ShownMaintenance {
  return {
    ...(!record.isShared && { info: inThisProcess }),
    operators: record.entries()
  }
}

export function closableRoutes({ config }: Desk): string[] {
  return [...Object.keys(config().routes.routes), 'login']
}

function readMaintenance(body: Static<typeof beginBody>, desk: Desk): Closing {
  const known = new Set(closableRoutes(desk))
  const unknown = body.routes?.find(route => !known.has(route))
  if (unknown !== undefined) throw malformed(`routes.yaml has no route "${unknown}".`)
  return { routes: [], methods: [], allowRoles: [], ...body }
}
