/** Live config, the `parts` of a route or of the profile: what other upstreams add to an answer. */
import { Type, type Static } from 'typebox'
import { dotted, duration, flag, name, named, path, text } from './primitives.ts'
import type { RoutesConfig } from './routes.ts'
import type { Path } from './visit.ts'

const part = Type.Object(
  {
    upstream: name({
      description: 'An upstream of this file. It is told who asks as it is on a route of its own.'
    }),
    rewrite: path({
      description:
        'The path there; with `/*` at its end it keeps what the `*` of the route’s `path` stands for. It is asked with GET.',
      examples: ['/notices/unread']
    }),
    query: flag({ default: false, description: 'Whether the request’s query goes along.' }),
    timeout: Type.Optional(
      duration({
        description:
          'How long the whole answer may take; the upstream’s `responseTimeout` without it.'
      })
    ),
    shape: Type.Optional(name({ description: 'A shape of this file, for this part alone.' })),
    unwrap: Type.Optional(
      dotted({
        description:
          'Where in the part’s answer, after its shape, is what is wanted; all of it without this.',
        examples: ['result.count']
      })
    ),
    into: Type.Optional(
      dotted({
        description:
          'Where it goes in the answer, before the route’s own shape; what lies on the way is made. Without this the part’s members are added to the answer’s.',
        examples: ['unreadCount']
      })
    ),
    required: flag({
      default: true,
      description:
        'Whether there is no answer without it: its error is then the request’s. A part that is not required is left out where it fails, and named in the answer.'
    }),
    default: Type.Optional(
      Type.Unknown({
        description: 'What stands in its place where it is missing or null.',
        examples: [0]
      })
    )
  },
  {
    additionalProperties: false,
    description: 'What another upstream adds to the answer. All are asked at the same time.'
  }
)

export const partsSchema = named(part, {
  description: 'What other upstreams add to the answer, by name.'
})
export const missingSchema = text({
  default: 'missing',
  description:
    'The member of the answer, beside `data` of the envelope, that names the parts which are missing: a list of names, absent where none is.'
})

export type PartConfig = Static<typeof part>

/** All parts of a config, each with the place where it stands. */
export function partsOf({
  routes,
  endpoints: { profile }
}: RoutesConfig): Array<{ readonly place: Path; readonly part: PartConfig }> {
  const of = (place: Path, parts: Readonly<Record<string, PartConfig>>) =>
    Object.entries(parts).map(([key, each]) => ({ place: [...place, 'parts', key], part: each }))
  return [
    ...Object.entries(routes).flatMap(([route, { parts }]) => of(['routes', route], parts)),
    ...of(['endpoints', 'profile'], profile.parts)
  ]
}
