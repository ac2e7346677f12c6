/** Live config, `query` and `body` of a route: what the upstream gets in place of the console's. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const parameter = (description: string, example: string) =>
  s.text(description, { examples: [example] })
const firstPage = (whose: string) =>
  s.whole(`The number of the first page ${whose}: 0 or 1.`, { maximum: 1, default: 1 })

export const consolePaging = s.optional(
  'How the console sends page and size. GET routes make those of an upstream’s `paging` of them.',
  {
    page: parameter('The console’s page number.', 'current'),
    size: s.maybe(parameter('The console’s page size.', 'pageSize')),
    firstPage: firstPage('for the console'),
    defaultSize: s.may.whole('The page size if the console sends none.', { minimum: 1 })
  }
)

export const upstreamPaging = s.optional(
  'How the upstream takes `page` or `offset`, and `size`. `paging` at the top is needed, too.',
  {
    page: s.maybe(parameter('The upstream’s page number.', 'page')),
    offset: s.maybe(parameter('How many items to skip.', 'skip')),
    size: s.maybe(parameter('The upstream’s page size.', 'limit')),
    firstPage: firstPage('for the upstream')
  }
)

export const querySchema = s.optional(
  'Changes the query. What it sets or renames to is not taken from the client.',
  {
    rename: s.may.pairs('The console’s name to the upstream’s.', s.text('The upstream’s name.'), {
      examples: [{ keyword: 'q' }]
    }),
    drop: s.may.someOf('Parameters that it does not get.', s.anyText),
    set: s.may.pairs(
      'Parameters that it always gets, in place of the client’s.',
      Type.String({ description: 'The value.' }),
      { examples: [{ expand: 'lines' }] }
    ),
    paging: s.maybe(
      Type.Literal(false, { description: '`false`: page number and size pass as they are.' })
    )
  }
)

export const bodySchema = s.optional(
  'Changes JSON and form bodies of at most `sizes.shape`; others get 415.',
  {
    shape: s.may.shapeName('A shape for the body, without `open`, `status`, `wrap` and `paging`.'),
    as: s.may.oneOf('The type of the body. Default: that of the client.', ['json', 'form'])
  }
)

type Written<Schema extends Parameters<typeof s.maybe>[0]> = NonNullable<Static<Schema>>

/** Maps a route's query; `paging` is what console and upstream agree on. */
export interface QueryConfig extends Omit<Written<typeof querySchema>, 'paging'> {
  readonly paging?: Written<typeof consolePaging> & { readonly to: Written<typeof upstreamPaging> }
}
