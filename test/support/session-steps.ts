/** Random steps of people with their sessions at two replicas, for property-based tests. */
import fc from 'fast-check'

export type Step =
  | { do: 'open'; id: number; user: string; at: number }
  | { do: 'request' | 'look' | 'close' | 'extend' | 'renew'; id: number; at: number }
  | { do: 'closeUser'; user: string; at: number }
  | { do: 'closeAll'; at: number }

export type Wait = { do: 'wait'; ms: number }

const at = fc.integer({ min: 0, max: 1 })
const user = fc.constantFrom('u', 'v')
/** An id is only ever made for one user. */
const userOf = (id: number) => (id % 2 === 0 ? 'u' : 'v')

/** @param ids how many sessions there may be */
export function stepOf(ids: number): fc.Arbitrary<Step> {
  const id = fc.integer({ min: 0, max: ids - 1 })
  return fc.oneof(
    {
      weight: ids / 2,
      arbitrary: fc
        .record({ id, at })
        .map(({ id, at }) => ({ do: 'open' as const, id, user: userOf(id), at }))
    },
    {
      weight: Math.round((ids * 4) / 3),
      arbitrary: fc.record({
        do: fc.constantFrom(
          'request' as const,
          'request' as const,
          'look' as const,
          'look' as const,
          'close' as const,
          'extend' as const,
          'renew' as const
        ),
        id,
        at
      })
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('closeUser' as const), user, at }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('closeAll' as const), at }) }
  )
}

export const waitOf = (max: number): fc.Arbitrary<Wait> =>
  fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max }) })
