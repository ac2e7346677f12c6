/** `audit` of `gateway.yaml`: the ledger of who did what. */
import type { Static } from 'typebox'
import * as s from './primitives.ts'

const howToShow = s.oneOf(
  ['plain', 'last4', 'hash'],
  '`plain`: the value. `last4`: its last four characters. `hash`: a keyed hash, to find equal ' +
    'values without showing them.'
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
      s.secret('At least 32 characters.'),
      'The key that signs the lines, at least 32 characters; whoever has it can forge lines. To ' +
        'rotate it, write a list with the new key first.',
      {
        ofMany: 'To rotate the key: the new one first.',
        expected: 'a reference, ${NAME} or file:PATH, or a list of them',
        examples: ['${AUDIT_KEY}', 'file:/run/secrets/audit-key']
      }
    ),
    keep: s.lifetime(
      'Files that were last written longer ago are deleted, and named in the ledger. `0s`: none.',
      { default: '0s', minimum: 0, maximum: 3700 * day }
    ),
    fields: s.named(
      s.pairs(howToShow, 'Members of the body, as names joined by dots.', {
        minProperties: 1,
        maxProperties: 16
      }),
      'By route: members of request bodies (JSON, up to 64 KiB) that are recorded, up to ' +
        '256 characters of each. Never name passwords or tokens.',
      {
        keysName: 'route in the ledger',
        examples: [{ 'orders-write': { 'amount': 'plain', 'customer.iban': 'last4' } }]
      }
    )
  },
  'The audit ledger: a signed line for each sign-in, each request that may change ' +
    'something, and each act of an operator.'
)

export type AuditConfig = NonNullable<Static<typeof audit>>
export type HowToShow = AuditConfig['fields'][string][string]
