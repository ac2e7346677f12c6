/** What the upstream gets in place of the console's query and body. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const firstPage = s.whole('The number of the first page: 0 or 1.', { maximum: 1, default: 1 })

export const consolePaging = s.optional('How the console sends page and size, in reads.', {
  page: s.text('The page number.', { examples: ['current'] }),
  size: s.may.text('The page size.', { examples: ['pageSize'] }),
  firstPage,
  defaultSize: s.may.count('The page size if the console sends none.')
})

export const upstreamPaging = s.optional('What it takes in place of `paging` at the top.', {
  page: s.may.text('The page number.', { examples: ['page'] }),
  offset: s.may.text('How many items to skip.', { examples: ['skip'] }),
  size: s.may.text('The page size.', { examples: ['limit'] }),
  firstPage
})

export const querySchema = s.optional('Changes the query. What it sets is not the client’s.', {
  rename: s.may.pairs('The console’s name to the upstream’s.', s.text(), {
    examples: [{ keyword: 'q' }]
  }),
  drop: s.may.someOf('Parameters that it does not get.', s.text()),
  set: s.may.pairs('What it always gets, in place of the client’s.', s.anyText(), {
    examples: [{ expand: 'lines' }]
  }),
  paging: s.maybe(
    Type.Literal(false, { description: '`false`: page number and size pass as they are.' })
  )
})

export const bodySchema = s.optional('Changes JSON and forms up to `sizes.shape`. Others: 415.', {
  shape: s.may.shapeName('A shape for the body, without `open`, `status`, `wrap` and `paging`.'),
  as: s.may.oneOf('The type of the body. Default: that of the client.', ['json', 'form'])
})

type Written<Schema extends Parameters<typeof s.maybe>[0]> = NonNullable<Static<Schema>>

/** Maps a route's query; `paging` is what console and upstream agree on. */
export interface QueryConfig extends Omit<Written<typeof querySchema>, 'paging'> {
  readonly paging?: Written<typeof consolePaging> & { readonly to: Written<typeof upstreamPaging> }
}
