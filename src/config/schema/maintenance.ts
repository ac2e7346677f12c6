/** `maintenance` of `routes.yaml`: routes that are closed for a time. */
import { Type, type Static } from 'typebox'
import { anyText, list, may, maybe, name, oneOf } from './primitives.ts'

const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/
export const timePattern = timeText.source

export const maintenanceSchema = maybe(
  Type.Object(
    {
      routes: list(
        name('A route of this file, or `login`.', { names: 'route or login' }),
        'The routes to close. Default: all. The gateway’s own endpoints stay open, but for `login` ' +
          'if it is listed.'
      ),
      methods: list(
        oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], 'An HTTP method.'),
        'The methods to close. Default: all. `[POST, PUT, PATCH, DELETE]` is read-only mode.',
        { uniqueItems: true }
      ),
      allowRoles: list(
        anyText,
        'Users with one of these roles can go on, but for public routes, which know no roles.'
      ),
      until: may.text('The time when it ends. Consoles get it as `until` and as `Retry-After`.', {
        pattern: timePattern,
        format: 'x-time',
        expected: 'a time such as 2026-12-01T06:00:00Z or 2026-12-01T14:00+08:00',

        examples: ['2026-12-01T06:00:00Z']
      }),
      message: may.text('The message for users.')
    },
    {
      additionalProperties: false,
      description:
        'Closes routes for a time: they answer 503 `maintenance` with `Retry-After`. ' +
        '`maintenance: { methods: [POST, PUT, PATCH, DELETE] }` makes everything read-only.'
    }
  )
)

export type MaintenanceConfig = NonNullable<Static<typeof maintenanceSchema>>

/** That of an operator may begin later. */
export type Closing = MaintenanceConfig & { readonly from?: string }

export type BoundedClosing = Closing & { readonly until: string }

/** A closing that an operator began, with its author and the time of the begin. */
export interface MaintenanceEntry {
  readonly maintenance: BoundedClosing
  readonly author: string
  readonly since: string
}

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
  return `closes ${what}${which}${except}${start}${until === undefined ? '' : ` until ${until}`}`
}
