import type { Static, TProperties } from 'typebox'
import * as s from './primitives.ts'

const conditions = {
  status: s.may.someOf('Statuses that match.', s.status('A status.')),
  path: s.may.dotted('The path of a member of the JSON response.'),
  in: s.may.someOf(
    'Values of it. Without `in` and `startsWith` it must be there, not null or false.',
    s.scalar,
    { examples: [[0, 200]] }
  ),
  startsWith: s.may.someOf('Beginnings of it that match.', s.text(), { examples: [['captcha']] }),
  location: s.may.someOf('Where a redirect leads: the beginnings of its path.', s.text())
}

const testOf = <T extends TProperties>(description: string, members: T, more: object = {}) =>
  s.closed(description, { ...conditions, ...members }, { minProperties: 1, ...more })

export const answerTest = (description: string, more?: object) => testOf(description, {}, more)

export type AnswerTest = Static<ReturnType<typeof answerTest>>

const outcome = testOf(
  'An outcome, and the conditions for it, which must all match.',
  {
    is: s.oneOf('What it means. `challenge`: a wrong captcha; the password was not looked at.', [
      'success',
      'refused',
      'challenge',
      'blocked',
      'expired-password'
    ])
  },
  { minProperties: 2 }
)

/** @param refused the statuses that are refusals where config has none */
export const outcomesOf = (refused: string) =>
  s.list(
    `The first that matches counts. Default: success is 200, 201 or 204, refused ${refused}.`,
    outcome,
    { examples: [[{ is: 'refused', path: 'code', in: [401] }]] }
  )

export type OutcomeTest = Static<typeof outcome>
