/** Live config, `query` and `body` of a route: what the upstream gets in place of the console's. */
import { type Static, Type } from 'typebox'
import { anyText, may, maybe, optional, text, whole } from './primitives.ts'

const parameter = (description: string, examples: string[]) => text(description, { examples })
const firstPage = (whose: string) =>
  whole(`The number of the first page ${whose}: 0 or 1.`, { maximum: 1, default: 1 })

/** `paging` of `routes.yaml`. */
export const consolePaging = optional(
  {
    page: parameter('The console’s parameter with the page number.', ['current']),
    size: maybe(parameter('The console’s parameter with the page size.', ['pageSize'])),
    firstPage: firstPage('for the console'),
    defaultSize: may.whole(
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
export const upstreamPaging = optional(
  {
    page: maybe(parameter('The upstream’s parameter with the page number.', ['page'])),
    offset: maybe(
      parameter('The upstream’s parameter with the number of items to skip.', ['skip'])
    ),
    size: maybe(parameter('The upstream’s parameter with the page size.', ['limit'])),
    firstPage: firstPage('for the upstream')
  },
  'How the upstream takes page number and size: `page` or `offset`, and `size`. It is used where ' +
    '`paging` at the top of this file says what the console sends.'
)

export const querySchema = may.closed(
  {
    rename: may.pairs(
      text('The upstream’s name.'),
      'Rename parameters: the console’s name to the upstream’s.',
      { examples: [{ keyword: 'q' }] }
    ),
    drop: may.someOf(anyText, 'Parameters of the console that the upstream does not get.'),
    set: may.pairs(
      Type.String({ description: 'The value.' }),
      'Parameters that the upstream always gets. A value of the client is replaced.',
      { examples: [{ expand: 'lines' }] }
    ),
    paging: maybe(
      Type.Literal(false, {
        description: '`false`: page number and size pass as the console sends them.'
      })
    )
  },
  'Changes the query for the upstream. A parameter that this sets or renames to is not ' +
    'taken from the client under its own name. Default: the query passes unchanged.'
)

export const bodySchema = may.closed(
  {
    shape: may.name(
      'A shape of this file for the JSON or form body, without `open`, `status`, `wrap` and ' +
        '`paging`, which are about responses.',
      { names: 'shape' }
    ),
    as: may.oneOf(
      ['json', 'form'],
      'The type of the body that the upstream gets. Default: the type that the client sent.'
    )
  },
  'Changes JSON and form bodies of at most `sizes.shape`; other types are refused (415). ' +
    'Default: bodies pass byte for byte.'
)

type Written<Schema extends Parameters<typeof maybe>[0]> = NonNullable<Static<Schema>>

/** Maps a route's query; `paging` is what console and upstream agree on. */
export interface QueryConfig extends Omit<Written<typeof querySchema>, 'paging'> {
  readonly paging?: Written<typeof consolePaging> & { readonly to: Written<typeof upstreamPaging> }
}
