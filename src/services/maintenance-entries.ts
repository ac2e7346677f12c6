/** What operators have closed: how a begin adds to it, and what an end leaves of it. */
import type { MaintenanceEntry } from '../config/schema/maintenance.ts'
import { GatewayError } from '../errors/errors.ts'

export const endMs = ({ maintenance }: MaintenanceEntry): number => Date.parse(maintenance.until)

/**
 * The routes add up. One that is named again takes the new end, message and roles, unless the
 * former closing holds for more methods: a begin opens nothing.
 */
export function withBegun(
  former: readonly MaintenanceEntry[],
  begun: MaintenanceEntry
): MaintenanceEntry[] {
  const { routes, methods } = begun.maintenance
  const isReplaced = ({ maintenance: { methods: others, routes: names } }: MaintenanceEntry) =>
    (methods.length === 0 || (others.length > 0 && others.every(each => methods.includes(each)))) &&
    (routes.length === 0) === (names.length === 0)
  const kept = former.flatMap(entry => (isReplaced(entry) ? withoutNames(entry, routes) : [entry]))
  return [...kept, begun]
}

/** @throws GatewayError for a route that is not closed by its name */
export function withoutRoutes(
  entries: readonly MaintenanceEntry[],
  routes: readonly string[]
): MaintenanceEntry[] {
  if (routes.length === 0) return []
  const names = new Set(entries.flatMap(({ maintenance }) => maintenance.routes))
  const open = routes.find(route => !names.has(route))
  if (open !== undefined) {
    throw new GatewayError('request.malformed', {
      message: `No operator closed the route "${open}" by its name. An end without routes opens all.`
    })
  }
  return entries.flatMap(entry =>
    entry.maintenance.routes.length === 0 ? [entry] : withoutNames(entry, routes)
  )
}

/** @returns none where nothing is left of it */
function withoutNames(entry: MaintenanceEntry, names: readonly string[]): MaintenanceEntry[] {
  const { maintenance } = entry
  const routes = maintenance.routes.filter(route => !names.includes(route))
  return routes.length === 0 ? [] : [{ ...entry, maintenance: { ...maintenance, routes } }]
}
