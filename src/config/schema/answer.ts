/** `answer`: the body of a response as config writes it, with names that the session fills in. */
import { type Static, Type } from 'typebox'
import { closed, maybe, oneOf, pairs } from './primitives.ts'

/** Where a value stands in the success envelope. */
const placements = ['data', 'flat', 'none'] as const

/**
 * The names that a template may have, as `{name}`: the closed list, with the type of each value.
 * None of them is a credential or the id of a session.
 */
export const sessionNames = {
  id: 'text',
  username: 'text',
  name: 'text',
  roles: 'texts',
  role: 'text',
  access: 'text',
  permissions: 'texts',
  profile: 'object',
  token: 'text',
  refreshToken: 'text',
  issuedAt: 'number',
  idleEndsAt: 'number',
  absoluteEndsAt: 'number',
  expiresIn: 'number'
} as const

export type SessionName = keyof typeof sessionNames

export const inEnvelopeSchema = (description: string) => maybe(oneOf([...placements], description))

const placementText =
  '`data`: under `data` (or its name in a custom dialect). `flat`: its members stand beside the ' +
  'code and the message. `none`: without an envelope.'

const anyValue = (description: string, examples: unknown[]) =>
  Type.Unknown({ description, examples })

/** The schema of every `answer`. */
export const answerSchema = (description: string) =>
  maybe(
    closed(
      {
        json: maybe(
          anyValue(
            'The value. A text that is exactly `{name}` becomes that value of the session, with ' +
              'its type; everything else stays as it is. Names: ' +
              `${Object.keys(sessionNames)
                .map(name => `\`{${name}}\``)
                .join(', ')} and \`{profile.MEMBER}\`. Default: null.`,
            [{ accessToken: '{token}', userId: '{id}', roles: '{roles}' }]
          )
        ),
        status: maybe(
          Type.Integer({
            minimum: 200,
            maximum: 599,
            description: 'The HTTP status. Default: 200.',
            examples: [404]
          })
        ),
        byRole: maybe(
          pairs(
            anyValue('The value for users with this role.', [['*:*:*']]),
            'Values by role, in place of `json`. If a user has several of these roles, the ' +
              'first in this list wins. (Names that are whole numbers count as the first, in ' +
              'ascending order.)',
            { examples: [{ admin: ['*:*:*'], user: [] }] }
          )
        ),
        inEnvelope: inEnvelopeSchema(
          `The place of the value in the envelope. ${placementText} Default: \`data\`.`
        )
      },
      description
    )
  )

export type AnswerConfig = NonNullable<Static<ReturnType<typeof answerSchema>>>

/** The inner text of a value that is exactly `{…}`; undefined for every other value. */
export function placeholderOf(value: unknown): string | undefined {
  return typeof value === 'string' ? /^\{([^{}]+)\}$/.exec(value)?.[1] : undefined
}

/** A placeholder's name and the path below it; undefined for a name that is not in the list. */
export function sessionNameOf(
  placeholder: string
): { readonly name: SessionName; readonly path: readonly string[] } | undefined {
  const [name = '', ...path] = placeholder.split('.')
  if (!Object.hasOwn(sessionNames, name)) return undefined
  if (path.length > 0 && (name !== 'profile' || path.includes(''))) return undefined
  return { name: name as SessionName, path }
}
