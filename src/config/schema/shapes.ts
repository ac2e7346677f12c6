/** `shapes` of `routes.yaml`: operations that transform upstream responses. */
import { Type, type Static } from 'typebox'
import { asNode } from './node.ts'
import {
  closed,
  dotted,
  list,
  maybe,
  moduleFile,
  name,
  named,
  oneOf,
  pairs,
  text,
  whole
} from './primitives.ts'

const scalar = Type.Unsafe<string | number | boolean | null>(
  Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], {
    expected: 'a text, a number, true, false or null',
    description: 'A value.'
  })
)
const member = text('The name of a member.')

/** Formats of success and failure in a body that `open` knows; `status` describes others. */
export const openDialects = ['ant-design-pro', 'base-response', 'code-data'] as const

const operations = {
  open: maybe(
    oneOf(
      [...openDialects],
      'Must be first. Reads success or failure in a format of the back-end, and goes on with ' +
        '`data`; a failure becomes an error with the right HTTP status and its message.'
    )
  ),
  status: maybe(
    closed(
      {
        path: dotted('The path of the member that tells success or failure.', {
          examples: ['code']
        }),
        ok: list(scalar, 'The values that mean success. A missing member counts as null.', {
          minItems: 1,
          examples: [[0, 200]]
        }),
        statuses: maybe(
          pairs(
            whole('An HTTP status.', { minimum: 400, maximum: 599 }),
            'The HTTP status of each failure value. Others from 400 to 599 are it themselves.',
            { examples: [{ 40001: 404 }] }
          )
        ),
        otherwise: whole('The HTTP status of all other values.', {
          minimum: 400,
          maximum: 599,
          default: 502
        }),
        message: maybe(
          dotted('The path of the back-end’s message for users.', { examples: ['msg'] })
        )
      },
      'Must be first. The same as `open` for a back-end of another format.'
    )
  ),
  unwrap: maybe(
    dotted('Continue with the value at this path, or null if it does not exist.', {
      examples: ['result.items']
    })
  ),
  pick: maybe(list(member, 'Keep only these members.', { minItems: 1 })),
  drop: maybe(list(member, 'Remove these members.', { minItems: 1 })),
  rename: maybe(
    pairs(text('The new name.'), 'Rename members: old name to new name.', {
      examples: [{ subject: 'title' }]
    })
  ),
  move: maybe(
    pairs(
      dotted('The new path.'),
      'Move values: old path to new path, all at once. Missing objects on the way are created.',
      { examples: [{ 'user.name': 'author' }] }
    )
  ),
  lift: maybe(
    dotted(
      'The members of the object at this path go up into the object that holds it. A member that ' +
        'the holder already has stays.',
      { examples: ['attributes'] }
    )
  ),
  nest: maybe(
    closed(
      {
        as: text('The name of the member.', { examples: ['rows'] }),
        count: maybe(
          text('The name of another member: how many items the list has.', { examples: ['total'] })
        )
      },
      'Put the value into a new object, for a back-end that answers a bare list.'
    )
  ),
  default: maybe(
    pairs(Type.Unknown(), 'Set members that are missing or null to these values.', {
      examples: [{ read: false }]
    })
  ),
  constant: maybe(
    pairs(Type.Unknown(), 'Set members to these values, always.', {
      examples: [{ type: 'notification' }]
    })
  ),
  map: maybe(
    pairs(
      // The empty text is a valid key: many back-ends use it for "not set".
      Type.Record(Type.String({ pattern: '^[^]*$' }), Type.Unknown(), {
        description: 'The new value of each old value.'
      }),
      'Replace values of members: for each member, old values (as text) to new values. `"*"` ' +
        'stands for every other value; without it, other values stay.',
      { examples: [{ state: { 0: 'unread', 1: 'read' } }] }
    )
  ),
  convert: maybe(
    pairs(
      Type.String({
        pattern:
          '^(number|string|boolean|date-seconds|date-milliseconds|date-text(@[+-][0-9]{2}:[0-9]{2})?)$',
        expected:
          'number, string, boolean, date-seconds, date-milliseconds, date-text or date-text@+08:00'
      }),
      'Convert members to another type; dates become ISO 8601 in UTC. A value that cannot be ' +
        'converted without loss stays as it is.',
      { examples: [{ createdAt: 'date-seconds', id: 'string' }] }
    )
  ),
  use: maybe(name('Insert the operations of another shape of this file here.', { names: 'shape' })),
  module: maybe(
    moduleFile(
      'Own code: a JavaScript file below the config folder whose default export gets the value ' +
        'and `{ route, user }`, and returns the new value (docs/shaping.md).',
      { examples: ['./shapes/orders.js'] }
    )
  ),
  echo: maybe(
    closed(
      {
        page: text('The member for the page number.', { examples: ['current'] }),
        size: text('The member for the page size.', { examples: ['size'] })
      },
      'Adds the page number and size that the console sent, as `paging` of this file names them.'
    )
  ),
  paging: maybe(
    closed(
      {
        list: dotted('The path of the list.', { examples: ['list'] }),
        total: maybe(
          dotted('The path of the number of items. Default: the length of the list.', {
            examples: ['count']
          })
        ),
        current: maybe(dotted('The path of the page number.', { examples: ['page'] })),
        pageSize: maybe(dotted('The path of the page size.', { examples: ['size'] })),
        each: maybe(list(Type.Unknown(), 'Operations on each item.', { minItems: 1 }))
      },
      'Must be last. Turns a page such as `{list, count}` into `{data, total, success}` in the ' +
        'success envelope.'
    )
  ),
  wrap: maybe(
    oneOf(
      ['envelope', 'list', 'flat'],
      'Must be last. Puts the value into the success envelope: `envelope`: under `data`. `list`: ' +
        'also with `total`. `flat`: its members beside the code and the message.'
    )
  ),
  each: maybe(
    list(Type.Unknown(), 'Operations on each item of the list, or on an object in its place.', {
      minItems: 1
    })
  ),
  at: maybe(
    closed(
      {
        path: dotted('The path of the value.', { examples: ['items'] }),
        operations: list(Type.Unknown(), 'The operations on the value.', { minItems: 1 })
      },
      'Operations on the value at a path, if there is one. The rest stays as it is.'
    )
  )
}

const step = closed(operations, 'One operation.', {
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

// Recursive: an operation can contain operations.
interface Holder {
  items?: unknown
  properties?: Record<string, Holder>
}
const { properties: { each, at, paging } = {} } = asNode(step) as Holder
for (const holder of [each, at?.properties?.['operations'], paging?.properties?.['each']]) {
  if (holder !== undefined) holder.items = step
}

export const shapesSchema = named(
  Type.Unsafe<readonly ShapeStep[]>(list(step, 'Operations, in this order.', { minItems: 1 })),
  'Shapes, by name: operations that turn an upstream’s response into what the console expects.'
)
