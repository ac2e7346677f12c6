/** `/ops/api/limits`: the use of limits against their numbers, and what other numbers would do. */
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { nearest } from '../config/schema/faults.ts'
import type { LimitsConfig } from '../config/schema/limits.ts'
import type { KeptUsage } from '../limits/usage/usage.ts'
import { limitUse, whatIf } from '../limits/usage/what-if.ts'
import { addOpsScope } from './api.ts'

interface Options {
  /** The limits in force. */
  readonly limits: () => LimitsConfig
  readonly readUsage: KeptUsage['read']
}

const count = Type.Integer({ minimum: 0 })
const countOrNull = Type.Union([count, Type.Null()])
const period = (ms: number) =>
  Type.String({ pattern: '^[1-9][0-9]{0,11}$', default: String(ms), description: 'Milliseconds.' })
const hourMs = 3_600_000

const useQuery = Type.Object({ sinceMs: period(hourMs) })
const whatIfQuery = Type.Object({
  limit: Type.String({ minLength: 1, maxLength: 63 }),
  factor: Type.String({
    pattern: '^([0-9]{1,2}|100)(\\.[0-9]{1,4})?$',
    default: '0.8',
    description: 'Of the number in force.'
  }),
  sinceMs: period(24 * hourMs)
})

const part = Type.Optional(Type.String())
const caller = Type.Object(
  { account: part, user: part, source: part, session: part, address: part },
  { description: 'What `whom` says, in parts: the id of a user, with the source.' }
)

const useAnswer = Type.Object({
  isRecorded: Type.Boolean({ description: 'false where ops.useRecord is 0s.' }),
  limits: Type.Array(
    Type.Object({
      limit: Type.String(),
      mode: Type.String(),
      by: Type.Array(Type.String()),
      key: Type.String({ description: 'max, or burst: what the numbers are about.' }),
      max: Type.Integer({ description: 'The number in force.' }),
      windowMs: Type.Integer(),
      requests: count,
      refused: count,
      shadowRefused: Type.Integer({ description: 'What a limit in shadow would have refused.' }),
      p50: count,
      p99: count,
      highest: Type.Integer({ description: 'The greatest need of a caller in an hour.' }),
      near: Type.Array(
        Type.Object({
          whom: Type.String(),
          caller,
          used: count,
          at: Type.String({ format: 'date-time' }),
          refused: count
        }),
        { description: 'Callers that needed 80 % of the number or more, at most 20.' }
      ),
      notes: Type.Array(Type.String())
    })
  )
})

const whatIfAnswer = Type.Object({
  limit: Type.String(),
  key: Type.String(),
  inForce: count,
  number: count,
  refused: Type.Integer({ description: 'Requests that it would have refused, at least.' }),
  refusedCallers: Type.Object({ from: count, to: count }),
  callers: Type.Array(Type.Object({ whom: Type.String(), caller, refused: count })),
  lowest: countOrNull,
  lowestFrom: countOrNull,
  notes: Type.Array(Type.String()),
  yaml: Type.String({ description: 'What to write into limits.yaml.' })
})

const hint =
  'Name a limit, and a factor up to 100: /ops/api/limits/what-if?limit=NAME&factor=0.8; ' +
  'sinceMs is a number of milliseconds.'

export function addLimitUse(ops: FastifyInstance, { limits, readUsage }: Options): void {
  const none = { hours: [], alone: false }

  async function use({ sinceMs }: Static<typeof useQuery>): Promise<Static<typeof useAnswer>> {
    const [now, askedMs] = [Date.now(), Number(sinceMs)]
    const recorded = (await readUsage?.(now - askedMs)) ?? none
    const rows = limitUse(limits(), recorded, askedMs, now)
    return {
      isRecorded: readUsage !== undefined,
      limits: rows.map(row => ({
        ...row,
        by: [...row.by],
        near: [...row.near],
        notes: [...row.notes]
      }))
    }
  }

  async function tryNumber({ limit, factor, sinceMs }: Static<typeof whatIfQuery>) {
    const config = limits()
    if (!Object.hasOwn(config.limits, limit)) {
      const hintOfName = nearest(limit, Object.keys(config.limits))
      throw malformed(`There is no limit "${limit}".${hintOfName}`)()
    }
    if (readUsage === undefined) throw malformed('No usage is recorded: ops.useRecord is 0s.')()
    const recorded = await readUsage(Date.now() - Number(sinceMs))
    return whatIf(limit, config, { recorded, factor: Number(factor) })
  }

  addOpsScope(ops, scope => {
    scope.get<{ Querystring: Static<typeof useQuery> }>(
      '/limits',
      {
        schema: {
          summary: 'The use of each limit against its number, and who is near it.',
          querystring: useQuery
        },
        schemaErrorFormatter: malformed('sinceMs is a number of milliseconds.'),
        config: { responds: useAnswer }
      },
      async ({ query }) => await use(query)
    )
    scope.get<{ Querystring: Static<typeof whatIfQuery> }>(
      '/limits/what-if',
      {
        schema: {
          summary: 'What another number of a limit would have refused, by the record of use.',
          querystring: whatIfQuery
        },
        schemaErrorFormatter: malformed(hint),
        config: { responds: whatIfAnswer }
      },
      async ({ query }) => await tryNumber(query)
    )
  })
}
