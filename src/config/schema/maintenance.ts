/** Live config, `maintenance` of `routes.yaml`: routes that are closed for a while, for most. */
import { Type, type Static } from 'typebox'
import { duration, list, name, oneOf, text } from './primitives.ts'

export const maintenanceSchema = Type.Optional(
  Type.Object(
    {
      routes: list(name({ description: 'A route of this file, or `login`.' }), {
        default: [],
        description:
          'What is closed; every route of this file without it. The gateway’s own endpoints stay open, but `login` may be named: nobody signs in then.'
      }),
      methods: list(
        oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'A method.' }),
        {
          default: [],
          uniqueItems: true,
          description:
            'With which methods; all without it. `[POST, PUT, PATCH, DELETE]` is read-only mode.',
          examples: [['POST', 'PUT', 'PATCH', 'DELETE']]
        }
      ),
      allowRoles: list(text({ description: 'A role.' }), {
        default: [],
        description:
          'Who has one of these roles goes on working. On public routes nobody’s roles are known.'
      }),
      until: Type.Optional(
        Type.String({
          pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d(:\\d\\d(\\.\\d+)?)?(Z|[+-]\\d\\d:\\d\\d)$',
          expected: 'a time such as 2026-12-01T06:00:00Z or 2026-12-01T14:00+08:00',
          description:
            'When it ends, by itself. Consoles are told (`until` in the envelope, `Retry-After`).',
          examples: ['2026-12-01T06:00:00Z']
        })
      ),
      retryAfter: duration({
        default: '1m',
        description: 'What `Retry-After` says where `until` is not set.'
      }),
      message: Type.Optional(
        text({
          description: 'What people are told.',
          examples: ['Orders are closed until 06:00 for the yearly stock-taking.']
        })
      )
    },
    {
      additionalProperties: false,
      description:
        'Closes routes for a while: 503 `maintenance`, enveloped, with `Retry-After`. `maintenance: { methods: [POST, PUT, PATCH, DELETE] }` makes everything read-only.'
    }
  )
)

export type MaintenanceConfig = NonNullable<Static<typeof maintenanceSchema>>

/** What is closed, for whom it stays open and until when: `closes orders (POST) until 2026-12-01T06:00:00Z`. */
export function maintenanceInWords({
  routes,
  methods,
  allowRoles,
  until
}: MaintenanceConfig): string {
  const what = routes.length === 0 ? 'every route' : routes.join(', ')
  const which = methods.length === 0 ? '' : ` (${methods.join(', ')})`
  const except = allowRoles.length === 0 ? '' : ` but for the roles ${allowRoles.join(', ')}`
  return `closes ${what}${which}${except}${until === undefined ? '' : ` until ${until}`}`
}
