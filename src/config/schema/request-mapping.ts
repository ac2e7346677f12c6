/** Live config, `query` and `body` of a route: what the upstream gets in place of the console's. */
import { type Static, Type } from 'typebox'
import { closed, list, maybe, name, oneOf, optional, pairs, text, whole } from './primitives.ts'

const parameter = (description: string, examples: string[]) => text(description, { examples })
const firstPage = (whose: string) =>
  whole(`The number of the first page ${whose}: 0 or 1.`, { maximum: 1, default: 1 })

const sentPaging = {
  page: parameter('The console’s parameter with the page number.', ['current']),
  size: maybe(parameter('The console’s parameter with the page size.', ['pageSize'])),
  firstPage: firstPage('for the console'),
  defaultSize: maybe(
    whole('The page size if the console sends none. An upstream that takes `offset` needs it.', {
      minimum: 1,
      examples: [20]
    })
  )
}

const takenPaging = {
  page: maybe(parameter('The upstream’s parameter with the page number.', ['page'])),
  offset: maybe(parameter('The upstream’s parameter with the number of items to skip.', ['skip'])),
  size: maybe(parameter('The upstream’s parameter with the page size.', ['limit'])),
  firstPage: firstPage('for the upstream')
}

/** `paging` of `routes.yaml`. */
export const consolePaging = optional(
  sentPaging,
  'How the console sends page number and size. GET routes to an upstream with `paging` turn them ' +
    'into those of the upstream. `query.paging` of a route comes before it.'
)

/** `paging` of an upstream. */
export const upstreamPaging = optional(
  takenPaging,
  'How the upstream takes page number and size: `page` or `offset`, and `size`. It is used where ' +
    '`paging` at the top of this file says what the console sends.'
)

const paging = closed(
  {
    ...sentPaging,
    to: closed(takenPaging, 'What the upstream gets: `page` or `offset`, and `size`.')
  },
  'Turns page number and size of the console into those of the upstream.'
)

export type PagingConfig = Static<typeof paging>

export const querySchema = maybe(
  closed(
    {
      rename: maybe(
        pairs(
          text('The upstream’s name.'),
          'Rename parameters: the console’s name to the upstream’s.',
          { examples: [{ keyword: 'q' }] }
        )
      ),
      drop: maybe(
        list(text('A parameter.'), 'Parameters of the console that the upstream does not get.', {
          minItems: 1,
          examples: [['_t']]
        })
      ),
      set: maybe(
        pairs(
          Type.String({ description: 'The value.' }),
          'Parameters that the upstream always gets. A value of the client is replaced.',
          { examples: [{ expand: 'lines' }] }
        )
      ),
      paging: maybe(
        Type.Unsafe<false | PagingConfig>(
          Type.Union([Type.Literal(false), paging], {
            expected: 'false or a mapping with page and to',
            description:
              'Turns page number and size of the console into those of the upstream. `false`: ' +
              'they pass as they are. Default: as `paging` of the upstream says.'
          })
        )
      )
    },
    'Changes the query for the upstream. A parameter that this sets or renames to is not ' +
      'taken from the client under its own name. Default: the query passes unchanged.',
    {
      examples: [
        {
          rename: { keyword: 'q' },
          paging: { page: 'current', size: 'pageSize', to: { page: 'page', size: 'per_page' } }
        }
      ]
    }
  )
)

export const bodySchema = maybe(
  closed(
    {
      shape: maybe(
        name(
          'A shape of this file for the JSON or form body. It cannot use `open`, ' +
            '`status`, `wrap` or `paging`, which are about responses.',
          { names: 'shape' }
        )
      ),
      as: maybe(
        oneOf(
          ['json', 'form'],
          'The type of the body that the upstream gets. Default: the type that the client sent.'
        )
      )
    },
    'Changes JSON and form bodies for the upstream; other types are refused (415). A body ' +
      'must not be larger than `sizes.shape`. Default: bodies pass byte for byte.',
    { examples: [{ shape: 'order-request' }, { as: 'form' }] }
  )
)

type WrittenQuery = NonNullable<Static<typeof querySchema>>

/** Maps a route's query. */
export interface QueryConfig extends Omit<WrittenQuery, 'paging'> {
  readonly paging?: PagingConfig
}
