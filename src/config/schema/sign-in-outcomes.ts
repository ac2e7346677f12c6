/** How an `upstream-login` source recognises what a sign-in’s response means. */
import { type TProperties, Type } from 'typebox'
import { dotted, list, maybe, text, whole } from './primitives.ts'

const conditions = {
  status: maybe(
    list(whole('A status.', { minimum: 100, maximum: 599 }), 'HTTP statuses that match.', {
      minItems: 1
    })
  ),
  path: maybe(dotted('The path of a member of the JSON response.', { examples: ['code'] })),
  in: maybe(
    list(
      Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
      'Values of that member that match. Without it and `startsWith`, the member must exist ' +
        'and be neither null nor false.',
      { examples: [[0, 200]], minItems: 1 }
    )
  ),
  startsWith: maybe(
    list(
      text('The beginning of a text.'),
      'Beginnings of that member, a text, that match too. For back-ends that tell outcomes ' +
        'apart by their messages alone.',
      { examples: [['captcha']], minItems: 1 }
    )
  )
}

const message = maybe(
  dotted(
    'The path of the back-end’s message for the user. It replaces ours where it is a text ' +
      'without markup; at most 200 characters of it are shown.',
    { examples: ['msg'] }
  )
)

/** The meta of a test of a response. */
interface Meta {
  readonly description: string
  readonly default?: object
}

const testOf = <T extends TProperties>(members: T, meta: Meta) =>
  Type.Object(
    { ...conditions, ...members },
    { additionalProperties: false, minProperties: 1, ...meta }
  )

export const answerTest = (meta: Meta) => testOf({}, meta)

/** Of ordinary calls, which may be redirects. */
export const endedTest = (meta: Meta) =>
  testOf(
    {
      location: maybe(
        list(
          text('The beginning of a path.'),
          'Where a redirect leads: the beginnings of its path, such as `/login`.',
          { examples: [['/login']], minItems: 1 }
        )
      )
    },
    meta
  )

export const refusedTest = (meta: Meta) => testOf({ message }, meta)

const outcomeTest = (description: string) => maybe(testOf({ message }, { description }))

const wrongCaptcha = testOf(
  {
    message,
    max: whole(
      'How many such responses of an account, within an hour, are no failure of the account. ' +
        'Any more count as refused sign-ins.',
      { minimum: 1, maximum: 100_000, default: 50 }
    )
  },
  {
    description:
      'How to recognise a sign-in whose captcha is missing or wrong, so that the password was ' +
      'not checked: `login.challenge` (400). It counts for the address, and up to `max` not for ' +
      'the account. Name it narrowly: a response that also fits `refused` is a refusal.'
  }
)

/** The outcomes beside `success` and `refused`, in the order of their tests. */
export const outcomes = {
  challenge: maybe(wrongCaptcha),
  blocked: outcomeTest(
    'How to recognise that the account is blocked at the back-end: `login.blocked` (403). It ' +
      'counts as a refused sign-in. It tells that the account exists.'
  ),
  expiredPassword: outcomeTest(
    'How to recognise that the password has to be changed first: `login.expired-password` (403). ' +
      'It counts as a refused sign-in. It tells that the account exists.'
  )
}
