/** Live config, `query` and `body` of a route: what the upstream gets in place of the console's. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const parameter = (description: string, example: string) =>
  s.text(description, { examples: [example] })
const firstPage = (whose: string) =>
  s.whole(`The number of the first page ${whose}: 0 or 1.`, { maximum: 1, default: 1 })

export const consolePaging = s.optional(
  {
    page: parameter('The console’s page number.', 'current'),
    size: s.maybe(parameter('The console’s page size.', 'pageSize')),
    firstPage: firstPage('for the console'),
    defaultSize: s.may.whole('The page size if the console sends none.', { minimum: 1 })
  },
  'How the console sends page and size. GET routes make those of an upstream’s `paging` of them.'
)

export const upstreamPaging = s.optional(
  {
    page: s.maybe(parameter('The upstream’s page number.', 'page')),
    offset: s.maybe(parameter('How many items to skip.', 'skip')),
    size: s.maybe(parameter('The upstream’s page size.', 'limit')),
    firstPage: firstPage('for the upstream')
  },
  'How the upstream takes `page` or `offset`, and `size`. `paging` at the top is needed, too.'
)

export const querySchema = s.optional(
  {
    rename: s.may.pairs(s.text('The upstream’s name.'), 'The console’s name to the upstream’s.', {
      examples: [{ keyword: 'q' }]
    }),
    drop: s.may.someOf(s.anyText, 'Parameters that it does not get.'),
    set: s.may.pairs(
      Type.String({ description: 'The value.' }),
      'Parameters that it always gets, in place of the client’s.',
      { examples: [{ expand: 'lines' }] }
    ),
    paging: s.maybe(
      Type.Literal(false, { description: '`false`: page number and size pass as they are.' })
    )
  },
  'Changes the query. What it sets or renames to is not taken from the client.'
)

export const bodySchema = s.optional(
  {
    shape: s.may.shapeName('A shape for the body, without `open`, `status`, `wrap` and `paging`.'),
    as: s.may.oneOf(['json', 'form'], 'The type of the body. Default: that of the client.')
  },
  'Changes JSON and form bodies of at most `sizes.shape`; others get 415.'
)

type Written<Schema extends Parameters<typeof s.maybe>[0]> = NonNullable<Static<Schema>>

/** Maps a route's query; `paging` is what console and upstream agree on. */
export interface QueryConfig extends Omit<Written<typeof querySchema>, 'paging'> {
  readonly paging?: Written<typeof consolePaging> & { readonly to: Written<typeof upstreamPaging> }
}
