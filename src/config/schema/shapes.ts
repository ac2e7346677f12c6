import { type Static, Type } from 'typebox'
import { ownMember } from './node.ts'
import * as s from './primitives.ts'

const scalarOrNull = Type.Union([...s.scalar.anyOf, Type.Null()], {
  expected: 'a text, a number, true, false or null'
})

/** Formats of success and failure in a body that `open` knows; `status` describes others. */
export const openDialects = ['ant-design-pro', 'base-response', 'code-data'] as const

const operations = {
  open: s.may.oneOf('Comes first: goes on with `data`; a failure becomes an error.', openDialects),
  status: s.optional('Comes first. As `open`, for a back-end of another format.', {
    path: s.dotted('The member that tells success or failure.'),
    ok: s.someOf('The values that mean success. A missing member counts as null.', scalarOrNull),
    statuses: s.may.pairs(
      'The status of failures. Values from 400 to 599 are it themselves.',
      s.status('A status.', { minimum: 400 }),
      { examples: [{ 40001: 404 }] }
    ),
    otherwise: s.status('The status of all other values.', { minimum: 400, default: 502 }),
    message: s.may.dotted('The back-end’s message for users.')
  }),
  unwrap: s.may.dotted('Go on with the value at this path, or null.'),
  pick: s.may.someOf('Keep only these members.', s.text()),
  drop: s.may.someOf('Remove these members.', s.text()),
  rename: s.may.pairs('Old name to new name.', s.text(), {
    examples: [{ subject: 'title' }]
  }),
  move: s.may.pairs('Old path to new path. Missing objects are created.', s.dotted(), {
    examples: [{ 'user.name': 'author' }]
  }),
  lift: s.may.dotted('The members of the object at this path go up; those beside it stay.'),
  nest: s.optional('Put the value into a new object, for a back-end that answers a bare list.', {
    as: s.text('The name of the member.'),
    count: s.may.text('Another member: how many items the list has.'),
    countHeader: s.may.header('The header with that number: x-total-count or content-range.')
  }),
  default: s.may.pairs('Values of members that are missing or null.', Type.Unknown(), {
    examples: [{ read: false }]
  }),
  constant: s.may.pairs('Set members to these.', Type.Unknown(), {
    examples: [{ type: 'notification' }]
  }),
  map: s.may.pairs(
    'Replace values of members: old ones (as text) to new ones. `"*"`: every other value.',
    // The empty text is a valid key: many back-ends use it for "not set".
    Type.Record(Type.String({ pattern: '^[^]*$' }), Type.Unknown()),
    { examples: [{ state: { 0: 'unread', 1: 'read' } }] }
  ),
  convert: s.may.pairs(
    'Convert members to a type; dates become ISO 8601 in UTC. What would lose stays.',
    Type.String({
      pattern:
        '^(number|string|boolean|date-(seconds|milliseconds|text(@[+-][0-9]{2}:[0-9]{2})?))$',
      expected:
        'number, string, boolean, date-seconds, date-milliseconds, date-text or date-text@+08:00'
    }),
    { examples: [{ createdAt: 'date-seconds', id: 'string' }] }
  ),
  use: s.may.shapeName('Insert the operations of another shape of this file here.'),
  module: s.may.moduleFile('Own code: its default export takes it and `{ route, user }`.'),
  echo: s.optional('Adds page number and size as the console sent them (`paging` of this file).', {
    page: s.text('The page number.'),
    size: s.text('The page size.')
  }),
  paging: s.optional('Comes last. Turns `{list, count}` into `{data, total, success}`.', {
    list: s.dotted('The list.'),
    total: s.may.dotted('The number of items. Default: the length of the list.'),
    current: s.may.dotted('The page number.'),
    pageSize: s.may.dotted('The page size.'),
    each: s.may.someOf('Operations on each item.', Type.Unknown())
  }),
  wrap: s.may.oneOf('Comes last. Under `data`, with `total` (`list`), or beside `code`.', [
    'envelope',
    'list',
    'flat'
  ]),
  each: s.may.someOf('Operations on each item of the list, or on an object.', Type.Unknown()),
  at: s.optional('Operations on the value at a path, if there is one.', {
    path: s.dotted('Where the value is.'),
    operations: s.someOf('The operations on the value.', Type.Unknown())
  })
}

const stepSchema = s.closed('One operation.', operations, {
  minProperties: 1,
  maxProperties: 1,
  recursive: 'operation'
})

type Operations = Static<typeof stepSchema>
/** One operation of a shape: exactly one member is set. */
export interface ShapeStep extends Omit<Operations, 'each' | 'at' | 'paging'> {
  each?: readonly ShapeStep[]
  at?: { path: string; operations: readonly ShapeStep[] }
  paging?: Omit<NonNullable<Operations['paging']>, 'each'> & { each?: readonly ShapeStep[] }
}

/** They take no paths. */
export const memberOperations = [
  'pick',
  'drop',
  'rename',
  'default',
  'constant',
  'map',
  'convert'
] as const

// Recursive: an operation can contain operations.
const { properties: of } = stepSchema
for (const list of [of.each, of.at.properties.operations, of.paging.properties.each]) {
  Object.assign(list, { items: stepSchema })
}

export const shapesSchema = s.named(
  'They turn responses into what the console expects.',
  Type.Unsafe<readonly ShapeStep[]>(s.someOf('Operations, in this order.', stepSchema))
)

type Shapes = Readonly<Record<string, readonly ShapeStep[]>>

/**
 * @param within names of the shapes that hold the steps
 * @param onCycle gets these and the name of the shape that is left out
 */
export function flatten(
  steps: readonly ShapeStep[],
  shapes: Shapes,
  within: readonly string[] = [],
  onCycle?: (names: readonly string[]) => void
): ShapeStep[] {
  const inner = (others: readonly ShapeStep[], names = within) =>
    flatten(others, shapes, names, onCycle)
  return steps.flatMap(step => {
    const { use, each, at, paging } = step
    if (use !== undefined) {
      const names = [...within, use]
      if (!within.includes(use)) return inner(ownMember(shapes, use) ?? [], names)
      onCycle?.(names)
      return []
    }
    if (each !== undefined) return [{ each: inner(each) }]
    if (at !== undefined) return [{ at: { path: at.path, operations: inner(at.operations) } }]
    if (paging?.each !== undefined) return [{ paging: { ...paging, each: inner(paging.each) } }]
    return [step]
  })
}
