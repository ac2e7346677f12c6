/** Live config, `query` and `body` of a route: what the upstream gets in place of the console's. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const parameter = (description: string, examples: string[]) => s.text(description, { examples })
const firstPage = (whose: string) =>
  s.whole(`The number of the first page ${whose}: 0 or 1.`, { maximum: 1, default: 1 })

/** `paging` of `routes.yaml`. */
export const consolePaging = s.optional(
  {
    page: parameter('The console’s parameter with the page number.', ['current']),
    size: s.maybe(parameter('The console’s parameter with the page size.', ['pageSize'])),
    firstPage: firstPage('for the console'),
    defaultSize: s.may.whole(
      'The page size if the console sends none. An upstream that takes `offset` needs it.',
      {
        minimum: 1
      }
    )
  },
  'How the console sends page number and size. GET routes to an upstream with `paging` turn them ' +
    'into those of the upstream.'
)

/** `paging` of an upstream. */
export const upstreamPaging = s.optional(
  {
    page: s.maybe(parameter('The upstream’s parameter with the page number.', ['page'])),
    offset: s.maybe(
      parameter('The upstream’s parameter with the number of items to skip.', ['skip'])
    ),
    size: s.maybe(parameter('The upstream’s parameter with the page size.', ['limit'])),
    firstPage: firstPage('for the upstream')
  },
  'How the upstream takes page number and size: `page` or `offset`, and `size`. It is used where ' +
    '`paging` at the top of this file says what the console sends.'
)

export const querySchema = s.may.closed(
  {
    rename: s.may.pairs(
      s.text('The upstream’s name.'),
      'Rename parameters: the console’s name to the upstream’s.',
      { examples: [{ keyword: 'q' }] }
    ),
    drop: s.may.someOf(s.anyText, 'Parameters of the console that the upstream does not get.'),
    set: s.may.pairs(
      Type.String({ description: 'The value.' }),
      'Parameters that the upstream always gets. A value of the client is replaced.',
      { examples: [{ expand: 'lines' }] }
    ),
    paging: s.maybe(
      Type.Literal(false, {
        description: '`false`: page number and size pass as the console sends them.'
      })
    )
  },
  'Changes the query for the upstream. A parameter that this sets or renames to is not ' +
    'taken from the client under its own name. Default: the query passes unchanged.'
)

export const bodySchema = s.may.closed(
  {
    shape: s.may.name(
      'A shape of this file for the JSON or form body, without `open`, `status`, `wrap` and ' +
        '`paging`, which are about responses.',
      { names: 'shape' }
    ),
    as: s.may.oneOf(
      ['json', 'form'],
      'The type of the body that the upstream gets. Default: the type that the client sent.'
    )
  },
  'Changes JSON and form bodies of at most `sizes.shape`; other types are refused (415). ' +
    'Default: bodies pass byte for byte.'
)

type Written<Schema extends Parameters<typeof s.maybe>[0]> = NonNullable<Static<Schema>>

/** Maps a route's query; `paging` is what console and upstream agree on. */
export interface QueryConfig extends Omit<Written<typeof querySchema>, 'paging'> {
  readonly paging?: Written<typeof consolePaging> & { readonly to: Written<typeof upstreamPaging> }
}
