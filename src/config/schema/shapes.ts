/** Live config, the `shapes` and `examples` of `routes.yaml`: the operations that turn an upstream's body into what the console expects. */
import { Type, type Static, type TProperties } from 'typebox'
import { asNode } from './visit.ts'
import {
  dotted,
  duration,
  list,
  name,
  named,
  oneOf,
  pairs,
  size,
  text,
  whole
} from './primitives.ts'

const closed = <T extends TProperties>(
  properties: T,
  meta: {
    description: string
    default?: unknown
    minProperties?: number
    maxProperties?: number
    recursive?: string
  }
) => Type.Object(properties, { additionalProperties: false, ...meta })
const scalar = Type.Unsafe<string | number | boolean | null>(
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], {
    expected: 'a text, a number, true, false or null',
    description: 'A value.'
  })
)
const member = text({ description: 'A member.' })

/** How a back-end says in its body how it went; beside `status` these are ready-made. */
export const openDialects = ['ant-design-pro', 'base-response', 'code-data'] as const

const operations = {
  open: Type.Optional(
    oneOf([...openDialects], {
      description:
        'First of all: the back-end speaks this dialect. A failure gets a true status and the enveloped error with the back-end’s message; a success goes on with its `data`. `ant-design-pro`: `success: true` is success. `base-response`: `ok: true`. `code-data`: a `code` of 0, 200 or 20000 with `message` or `msg`.'
    })
  ),
  status: Type.Optional(
    closed(
      {
        path: dotted({ description: 'Where the back-end says how it went.', examples: ['code'] }),
        ok: list(scalar, {
          minItems: 1,
          description: 'The values there that mean success. An absent member counts as null.',
          examples: [[0, 200]]
        }),
        statuses: Type.Optional(
          pairs(whole({ minimum: 400, maximum: 599, description: 'An HTTP status.' }), {
            description:
              'Value: the HTTP status that it means. A number from 400 to 599 that is not named here means itself.',
            examples: [{ 40001: 404 }]
          })
        ),
        otherwise: whole({
          minimum: 400,
          maximum: 599,
          default: 502,
          description: 'The status for every other value.'
        }),
        message: Type.Optional(
          dotted({ description: 'Where the back-end’s message for people is.', examples: ['msg'] })
        )
      },
      {
        description:
          'First of all: a back-end that answers 200 whatever happened says in its body how it went. What is no success gets a true status and the enveloped error.'
      }
    )
  ),
  unwrap: Type.Optional(
    dotted({
      description: 'Go on with what is at this path; null where there is nothing.',
      examples: ['result.items']
    })
  ),
  pick: Type.Optional(list(member, { minItems: 1, description: 'Keep these members.' })),
  drop: Type.Optional(list(member, { minItems: 1, description: 'Leave these members out.' })),
  rename: Type.Optional(
    pairs(text({ description: 'The new name.' }), {
      description: 'Old name: new name. What already has the new name gives way.',
      examples: [{ subject: 'title' }]
    })
  ),
  move: Type.Optional(
    pairs(dotted({ description: 'Where to.' }), {
      description:
        'Old path: new path, through objects within objects. What lies on the way is made.',
      examples: [{ 'user.name': 'author' }]
    })
  ),
  default: Type.Optional(
    pairs(Type.Unknown(), {
      description: 'Values for members that are absent or null.',
      examples: [{ read: false }]
    })
  ),
  constant: Type.Optional(
    pairs(Type.Unknown(), {
      description: 'Members that always have this value.',
      examples: [{ type: 'notification' }]
    })
  ),
  map: Type.Optional(
    pairs(
      // The empty text is a value as any other: many back-ends mean "not set" by it.
      Type.Record(Type.String({ pattern: '^[^]*$' }), Type.Unknown(), {
        description: 'Old value: new value.'
      }),
      {
        description:
          'Member: its values, old to new. `"*"` stands for every other value; without it they stay. ' +
          'Numbers, true, false and null are written as texts, the empty text as `""`.',
        examples: [{ state: { 0: 'unread', 1: 'read' } }]
      }
    )
  ),
  convert: Type.Optional(
    pairs(
      Type.String({
        pattern:
          '^(number|string|boolean|date-seconds|date-milliseconds|date-text(@[+-][0-9]{2}:[0-9]{2})?)$',
        expected:
          'number, string, boolean, date-seconds, date-milliseconds, date-text or date-text@+08:00'
      }),
      {
        description:
          'Member: what it becomes. Dates become ISO 8601 in UTC: from seconds or milliseconds since 1970, or from text (`2026-11-21 08:30:00`; one without a zone is in UTC, or in the zone behind `@`). What cannot be converted without loss stays as it is.',
        examples: [{ createdAt: 'date-seconds', id: 'string' }]
      }
    )
  ),
  use: Type.Optional(
    name({ description: 'Another shape of this file: its operations stand here.' })
  ),
  jsonata: Type.Optional(
    text({
      description:
        'A JSONata expression (jsonata.org), for what the operations cannot say. It runs beside the requests, bounded by `expressions` of `limits.yaml`, and costs far more than they do.',
      examples: ['$sum(items.price)']
    })
  ),
  paging: Type.Optional(
    closed(
      {
        list: dotted({ description: 'Where the list is.', examples: ['list'] }),
        total: Type.Optional(
          dotted({
            description:
              'Where the number of all items is; without it, or where there is none, those of the list are counted.',
            examples: ['count']
          })
        ),
        current: Type.Optional(dotted({ description: 'Where the number of the page is.' })),
        pageSize: Type.Optional(dotted({ description: 'Where the length of a page is.' })),
        each: Type.Optional(
          list(Type.Unknown(), { minItems: 1, description: 'Operations on each item.' })
        )
      },
      {
        description:
          'Last of all: `{list, count}` becomes `{data, total, success}`, under the success envelope.'
      }
    )
  ),
  wrap: Type.Optional(
    oneOf(['envelope', 'list'], {
      description:
        'Last of all: `envelope` puts the value under `data` of the success envelope; `list` also sets `total`. A list that is null, an empty object or an empty text is an empty list; any other single value is a list of one.'
    })
  ),
  each: Type.Optional(
    list(Type.Unknown(), {
      minItems: 1,
      description:
        'Operations on each item of the list, or on the single object that stands in its place.'
    })
  ),
  at: Type.Optional(
    closed(
      {
        path: dotted({ description: 'Where.', examples: ['items'] }),
        operations: list(Type.Unknown(), { minItems: 1, description: 'What is done there.' })
      },
      {
        description:
          'Operations on what is at a path; nothing where there is nothing. The rest stays.'
      }
    )
  )
}

const step = closed(operations, {
  description: 'One operation.',
  minProperties: 1,
  maxProperties: 1,
  recursive: 'operation'
})

type Operations = Static<typeof step>
/** One operation of a shape: exactly one member is set. */
export interface ShapeStep extends Omit<Operations, 'each' | 'at' | 'paging'> {
  each?: readonly ShapeStep[]
  at?: { path: string; operations: readonly ShapeStep[] }
  paging?: Omit<NonNullable<Operations['paging']>, 'each'> & { each?: readonly ShapeStep[] }
}

// An operation holds operations: the schema holds itself.
interface Holder {
  items?: unknown
  properties?: Record<string, Holder>
}
const { properties: { each, at, paging } = {} } = asNode(step) as Holder
for (const holder of [each, at?.properties?.['operations'], paging?.properties?.['each']]) {
  if (holder !== undefined) holder.items = step
}

export const shapesSchema = named(
  Type.Unsafe<readonly ShapeStep[]>(
    list(step, { minItems: 1, description: 'Operations, in their order.' })
  ),
  { description: 'How answers are turned into what the console expects, by name.' }
)

export const examplesSchema = named(
  closed(
    {
      shape: name({ description: 'A shape of this file.' }),
      input: Type.Optional(Type.Unknown({ description: 'What the upstream answers.' })),
      inputFile: Type.Optional(
        text({
          description: 'A JSON file with what the upstream answers, in the place of `input`.'
        })
      ),
      output: Type.Optional(Type.Unknown({ description: 'What the console gets.' })),
      status: Type.Optional(
        whole({
          minimum: 400,
          maximum: 599,
          description: 'Where the shape tells a failure: its HTTP status, in the place of `output`.'
        })
      )
    },
    {
      description:
        'What a shape makes of an answer. `console-gateway check` tries it, and so does every start; one that fails is a fault.'
    }
  ),
  { description: 'Examples of what shapes do, by name.' }
)

export const expressionsSchema = closed(
  {
    timeout: duration({
      default: '200ms',
      description:
        'How long one expression may run; then the answer is 502 and the expression is stopped.'
    }),
    maxSize: size({
      default: '256KiB',
      maximum: 16 * 1024 ** 2,
      description: 'The largest JSON that goes into an expression, or comes out of it.'
    })
  },
  { default: {}, description: 'Bounds of the JSONata expressions in shapes.' }
)
