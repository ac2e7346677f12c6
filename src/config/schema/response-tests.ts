/** How a back-end's response is recognised: by its status, by a member, or by where it leads. */
import type { Static, TProperties } from 'typebox'
import * as s from './primitives.ts'

const conditions = {
  status: s.may.someOf(
    s.whole('A status.', { minimum: 100, maximum: 599 }),
    'Statuses that match.'
  ),
  path: s.may.dotted('The path of a member of the JSON response.'),
  in: s.may.someOf(
    s.scalar,
    'Values of it. Without `in` and `startsWith` it must be there, not null or false.',
    { examples: [[0, 200]] }
  ),
  startsWith: s.may.someOf(s.anyText, 'Beginnings of it that match.', { examples: [['captcha']] }),
  location: s.may.someOf(s.anyText, 'Where a redirect leads: the beginnings of its path.')
}

const testOf = <T extends TProperties>(members: T, description: string, more: object = {}) =>
  s.closed({ ...conditions, ...members }, description, { minProperties: 1, ...more })

export const answerTest = (description: string, more?: object) => testOf({}, description, more)

export type AnswerTest = Static<ReturnType<typeof answerTest>>

const outcome = testOf(
  {
    is: s.oneOf(
      ['success', 'refused', 'challenge', 'blocked', 'expired-password'],
      'What it means. `challenge`: a wrong captcha; the password was not looked at.'
    )
  },
  'An outcome, and the conditions for it, which must all match.',
  { minProperties: 2 }
)

/** @param refused the statuses that are refusals where config has none */
export const outcomesOf = (refused: string) =>
  s.list(
    outcome,
    'What responses mean; the first that matches counts. Default: `success` is 200, 201 or 204, and ' +
      `\`refused\` ${refused}.`,
    { examples: [[{ is: 'refused', path: 'code', in: [401] }]] }
  )

export type OutcomeTest = Static<typeof outcome>
