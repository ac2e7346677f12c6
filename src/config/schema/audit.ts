/** `audit` of `gateway.yaml`: the ledger of who did what. */
import type { Static } from 'typebox'
import * as s from './primitives.ts'

const howToShow = s.oneOf(
  ['plain', 'last4', 'hash'],
  '`plain`: the value. `last4`: its last four characters. `hash`: a keyed hash, to find ' +
    'equal values.'
)

const day = 86_400_000

export const audit = s.optional(
  {
    to: s.oneOf(
      ['files', 'stdout'],
      '`files`: into `folder`. `stdout`: to standard output, among the lines of the log.',
      { default: 'files' }
    ),
    folder: s.text('The folder of the files. Several processes may share it.', {
      default: 'audit'
    }),
    key: s.oneOrMany<string>(
      s.signingSecret('At least 32 characters.'),
      'The key that signs the lines. To rotate it, write a list with the new key first.',
      {
        ofMany: 'To rotate the key: the new one first.',
        expected: 'a reference to at least 32 characters, or a list of them'
      }
    ),
    keep: s.lifetime('Older files are deleted, which the ledger says. `0s`: none.', {
      default: '0s',
      minimum: 0,
      maximum: 3700 * day
    }),
    fields: s.named(
      s.pairs(howToShow, 'Members of the body, as names joined by dots.', {
        minProperties: 1,
        maxProperties: 16
      }),
      'By route: members of JSON bodies up to 64 KiB that are recorded, 256 characters of ' +
        'each. Never name passwords or tokens.',
      {
        keysName: 'route in the ledger',
        examples: [{ 'orders-write': { 'amount': 'plain', 'customer.iban': 'last4' } }]
      }
    )
  },
  'The audit ledger: a signed line for each sign-in, change and act of an operator.'
)

export type AuditConfig = NonNullable<Static<typeof audit>>
export type HowToShow = AuditConfig['fields'][string][string]
