export interface Closing {
  /** Empty for all. */
  readonly routes: readonly string[]
  /** Empty for all. */
  readonly methods: readonly string[]
  /** Users with one of them can go on. */
  readonly allowRoles: readonly string[]
  readonly from?: string
  readonly until: string
  readonly message?: string
}

export interface MaintenanceEntry {
  readonly maintenance: Closing
  readonly author: string
  readonly since: string
}

export const timePattern =
  '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)$'

/** The time in milliseconds; NaN for a day that the calendar does not have, such as 30 February. */
export function endOf(until: string): number {
  const [date, day] = [until.slice(0, 10), until.slice(8, 10)]
  return new Date(date).getUTCDate() === Number(day) ? Date.parse(until) : NaN
}

/** A summary such as `closes orders (POST) until 2026-12-01T06:00:00Z`. */
export function maintenanceInWords({ routes, methods, allowRoles, from, until }: Closing): string {
  const what = routes.length === 0 ? 'every route' : routes.join(', ')
  const which = methods.length === 0 ? '' : ` (${methods.join(', ')})`
  const except = allowRoles.length === 0 ? '' : ` but for the roles ${allowRoles.join(', ')}`
  const start = from === undefined ? '' : ` from ${from}`
  return `closes ${what}${which}${except}${start} until ${until}`
}
